// Runs before the page is rendered, so that it never flashes in the wrong theme.
try {
  const chosen = localStorage.getItem("folio-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be blocked; then the system theme applies.
}
