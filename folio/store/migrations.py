"""The schema of the library, as the migrations that made it."""

from __future__ import annotations

import re

# The schema as migrations. A file's user_version counts those it has been through; a new file goes through all. Never
# change a released migration: add another. Statements are split at semicolons, so comments must not contain any.
STEPS = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE papers (
    id TEXT PRIMARY KEY,               -- SHA-256 of the file
    title TEXT NOT NULL, authors TEXT NOT NULL, year INTEGER,
    text TEXT NOT NULL, length INTEGER NOT NULL,
    starts TEXT NOT NULL,              -- JSON: where each physical page begins in the text
    labels TEXT NOT NULL,              -- JSON: the label printed on each page
    problems TEXT NOT NULL,            -- JSON: what was odd when it was read
    added TEXT NOT NULL, generation INTEGER NOT NULL
);
CREATE TABLE files (
    path TEXT PRIMARY KEY, name TEXT NOT NULL,
    paper TEXT NOT NULL REFERENCES papers(id) ON DELETE CASCADE
);
CREATE INDEX files_paper ON files(paper);
CREATE TABLE failures (
    path TEXT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, happened TEXT NOT NULL, remedy TEXT NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,            -- chunk.chunk_id: the same number in FAISS and BM25
    paper TEXT NOT NULL REFERENCES papers(id) ON DELETE CASCADE,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    text_hash BLOB NOT NULL, generation INTEGER NOT NULL
);
CREATE INDEX chunks_paper ON chunks(paper);
CREATE INDEX chunks_hash ON chunks(text_hash);
CREATE INDEX chunks_generation ON chunks(generation);
CREATE TABLE vectors (chunk INTEGER PRIMARY KEY REFERENCES chunks(id) ON DELETE CASCADE, data BLOB NOT NULL);
CREATE TABLE removed (chunk INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX removed_generation ON removed(generation);
-- Vectors of a paper that is still being embedded, so that a kill does not cost them.
CREATE TABLE pending (text_hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
""",
    """
ALTER TABLE papers ADD COLUMN arxiv TEXT NOT NULL DEFAULT '';
CREATE TABLE queries (                 -- the log of questions: nothing else hangs on it
    id INTEGER PRIMARY KEY,
    asked TEXT NOT NULL,               -- ISO time in UTC
    question TEXT NOT NULL, standalone_question TEXT NOT NULL,
    chunks TEXT NOT NULL,              -- JSON: ids of the chunks that the answer was made from
    answer TEXT NOT NULL,
    sources TEXT NOT NULL,             -- JSON: paper, file, page and quote of each citation
    timings_ms TEXT NOT NULL,          -- JSON: milliseconds of each stage
    model TEXT NOT NULL,
    feedback TEXT NOT NULL             -- "good", "bad" or ""
);
""",
    """
CREATE INDEX papers_generation ON papers(generation);
-- All that is shown of a paper: read from its row, every page of the text that lies before it would be read too.
CREATE INDEX papers_about ON papers(id, title, authors, year, starts, labels, length, problems, arxiv, added);
-- So that nobody counts them
INSERT INTO meta SELECT 'chunks', count(*) FROM chunks;
""",
    """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, title TEXT NOT NULL,
    begun TEXT NOT NULL, updated TEXT NOT NULL -- ISO times in UTC
);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    place INTEGER NOT NULL,            -- in the conversation, from 1
    asked TEXT NOT NULL,               -- ISO time in UTC
    reply TEXT NOT NULL,               -- JSON: what people saw
    memory TEXT NOT NULL,              -- JSON: what a follow-up needs (answer_snapshot.py)
    query INTEGER REFERENCES queries(id) ON DELETE SET NULL,
    UNIQUE (conversation, place)
);
CREATE INDEX turns_query ON turns(query);
""",
    """
-- Digests of what was written (digests.py): every read compares them, so that damage is an error
CREATE TABLE paper_digests (
    paper TEXT PRIMARY KEY REFERENCES papers(id) ON DELETE CASCADE,
    text INTEGER NOT NULL,             -- CRC-32 of the text
    about BLOB NOT NULL                -- of the rest of the row, the number of chunks, and the digest of the text
) WITHOUT ROWID;
INSERT INTO paper_digests SELECT id, text_crc(text), row_digest('papers', id, title, authors, year, starts, labels,
    length, problems, arxiv, added, (SELECT count(*) FROM chunks WHERE paper = papers.id), text_crc(text)) FROM papers;
ALTER TABLE files ADD COLUMN digest BLOB;
UPDATE files SET digest = row_digest('files', path, name, paper);
ALTER TABLE failures ADD COLUMN digest BLOB;
UPDATE failures SET digest = row_digest('failures', path, name, sha256, happened, remedy);
-- Without its feedback, which is added later
ALTER TABLE queries ADD COLUMN digest BLOB;
UPDATE queries SET digest = row_digest('queries', id, asked, question, standalone_question, chunks, answer, sources,
    timings_ms, model);
ALTER TABLE conversations ADD COLUMN digest BLOB;
UPDATE conversations SET digest = row_digest('conversations', id, title, begun);
ALTER TABLE turns ADD COLUMN digest BLOB;
UPDATE turns SET digest = row_digest('turns', conversation, place, asked, reply, memory);
""",
    """
CREATE TABLE sections (                -- spans of a paper's text, each from its heading on
    paper TEXT NOT NULL REFERENCES papers(id) ON DELETE CASCADE,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    level INTEGER NOT NULL, number TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
    PRIMARY KEY (paper, start)
) WITHOUT ROWID;
-- Of all sections of a paper and the CRC of its text, NULL for papers that were read before sections were
ALTER TABLE paper_digests ADD COLUMN sections BLOB;
""",
    """
-- What each source says of a paper (paper_metadata.py). What did not come from its PDF outlives the paper.
CREATE TABLE metadata (
    paper TEXT NOT NULL,               -- SHA-256 of its file
    source TEXT NOT NULL,
    fields TEXT NOT NULL,              -- JSON: field -> its value, its origin, whether it is sure
    updated TEXT NOT NULL,             -- ISO time in UTC
    digest BLOB NOT NULL,
    PRIMARY KEY (paper, source)
);
-- The columns title, authors, year and arxiv of papers are no longer read, and empty in new rows.
INSERT INTO metadata
    SELECT id, 'pdf', fields, added, row_digest('metadata', id, 'pdf', fields, added) FROM (
        SELECT id, added, metadata_json(title, authors, year, arxiv) AS fields FROM papers
    );
""",
    """
-- By the first author's family name and by the beginning of the title: papers that are cited alike (citation_labels.py)
CREATE INDEX metadata_family
    ON metadata(CASE WHEN json_valid(fields) THEN json_extract(fields, '$.authors.value[0][0]') END);
CREATE INDEX metadata_title
    ON metadata(CASE WHEN json_valid(fields) THEN substr(json_extract(fields, '$.title.value'), 1, 20) END);
""",
    """
-- A fine passage lies in a passage, its parent.
ALTER TABLE chunks ADD COLUMN parent INTEGER REFERENCES chunks(id) ON DELETE CASCADE;
CREATE INDEX chunks_parent ON chunks(parent) WHERE parent IS NOT NULL;
ALTER TABLE chunks ADD COLUMN digest BLOB;
UPDATE chunks SET digest = row_digest('chunks', id, paper, start, "end", hex(text_hash), parent);
-- The number of fine passages. That of the others is in the row chunks.
INSERT INTO meta VALUES ('fine', '0');
""",
    """
-- From 0 to 1, NULL for an answerer that gives none. The digest has it where it is not NULL.
ALTER TABLE queries ADD COLUMN confidence REAL;
""",
    """
-- The vector of a paper as a whole (paper_text.py), and the hash of the text that it was made from
CREATE TABLE paper_vectors (
    paper TEXT PRIMARY KEY REFERENCES papers(id) ON DELETE CASCADE,
    text_hash BLOB NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX paper_vectors_hash ON paper_vectors(text_hash);
-- Counts the changes of what is searched of papers as a whole: few of them start a generation
INSERT INTO meta VALUES ('described', '0');
""",
    """
-- Works that services describe (works.py): papers of the library and others. They outlive the papers.
CREATE TABLE works (
    id TEXT PRIMARY KEY,               -- a hash of the mark that it was first known by
    version_of TEXT NOT NULL,          -- the version of it that is preferred, '' for none
    said TEXT NOT NULL,                -- JSON: source -> when it was asked, and what it said (work.py)
    digest BLOB NOT NULL
);
CREATE INDEX works_version ON works(version_of) WHERE version_of != '';
-- What works are recognised by (Work.marks), made from what is said of them
CREATE TABLE work_marks (
    mark TEXT NOT NULL, work TEXT NOT NULL,
    PRIMARY KEY (mark, work)
) WITHOUT ROWID;
CREATE INDEX work_marks_work ON work_marks(work);
CREATE TABLE citations (
    citing TEXT NOT NULL,              -- a work
    cited TEXT NOT NULL,               -- a mark, of a work that is here or that nobody has looked up
    source TEXT NOT NULL, said_at TEXT NOT NULL, -- ISO time in UTC
    digest BLOB NOT NULL,
    PRIMARY KEY (citing, cited)
);
CREATE INDEX citations_cited ON citations(cited);
CREATE TABLE paper_works (
    paper TEXT PRIMARY KEY,            -- SHA-256 of its file
    work TEXT NOT NULL,
    found_by TEXT NOT NULL,            -- what they have in common
    score INTEGER NOT NULL,            -- how well they fit, 0 to 1000
    digest BLOB NOT NULL
);
CREATE INDEX paper_works_work ON paper_works(work);
CREATE TABLE notices (                 -- retractions, corrections and newer versions of works
    work TEXT NOT NULL,
    kind TEXT NOT NULL,
    dated TEXT NOT NULL,               -- YYYY-MM-DD or less, '' if not known
    link TEXT NOT NULL,                -- a DOI, an address or an arXiv id with its version, '' if not known
    source TEXT NOT NULL, said_at TEXT NOT NULL, -- ISO time in UTC
    digest BLOB NOT NULL,
    PRIMARY KEY (work, kind, link, source)
);
""",
    """
-- By arXiv id: papers that are in the library in several versions (citation_labels.py)
CREATE INDEX metadata_arxiv ON metadata(CASE WHEN json_valid(fields) THEN json_extract(fields, '$.arxiv.value') END);
""",
    """
-- JSON: how the evidence of a deep answer was found, NULL for others. The digest has it where it is not NULL.
ALTER TABLE queries ADD COLUMN trace TEXT;
""",
    """
-- By DOI: papers that are in the library in several versions (citation_labels.py)
CREATE INDEX metadata_doi ON metadata(lower(CASE WHEN json_valid(fields) THEN json_extract(fields, '$.doi.value') END));
""",
)
# Names of all tables and indexes
OBJECTS = frozenset(re.findall(r"CREATE (?:TABLE|INDEX) (\w+)", "".join(STEPS)))
