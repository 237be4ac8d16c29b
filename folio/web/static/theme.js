// Runs before the page is drawn, so that it never flashes in the colours that the reader did not choose.
try {
  const chosen = localStorage.getItem("folio-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system decides.
}
