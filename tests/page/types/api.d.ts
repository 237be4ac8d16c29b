// Made by scripts/make_page_types.py.
declare namespace Api {
  interface AboutQuoteJson {
    kind: "claim" | "method" | "result" | "limits";
    start: number;
    end: number;
    page: number;
    label: string;
    section: string;
    quote: string;
  }

  interface AddedEvent {
    status: "added" | "replaced" | "unchanged" | "duplicate" | "failed" | "pruned";
    paper: PaperJson;
    notes: (string)[];
  }

  interface AgainRequest {
    model?: string | null;
  }

  interface AgeJson {
    years: (number)[];
    unknown: number;
  }

  interface Annotation {
    type: "url_citation";
    url_citation: UrlCitation;
  }

  interface AnswerErrorJson {
    error: string;
    remedy: string;
    model_failed: boolean;
  }

  interface AuthorsFieldJson {
    origin: "" | "page" | "pdf metadata" | "identifier" | "file date" | "cited works" | "file name" | "arxiv" | "openalex" | "crossref" | "semanticscholar" | "europepmc" | "bibliography" | "zotero" | "person";
    sure: boolean;
    value: (PersonJson_Output)[];
  }

  interface BasisJson {
    papers: number;
    relevant: number;
    scored: number;
    statements: number;
    left_out: number;
  }

  interface BibliographyJson {
    name: string;
    entries: number;
    matched: (MatchedEntry)[];
    unmatched: (UnmatchedEntry)[];
    problems: (string)[];
    count_matched: number;
    count_changed: number;
    count_withdrawn: number;
    count_unmatched: number;
    is_taken: boolean;
  }

  interface BlockJson {
    kind: "heading" | "paragraph" | "item";
    level: number;
    runs: (RunJson)[];
  }

  interface Body_add_paper_papers_post {
    file: string;
  }

  interface Body_import_bibliography_bibliography_post {
    file: string;
  }

  interface Body_preview_bibliography_bibliography_preview_post {
    file: string;
  }

  interface Body_restore_backup_backup_post {
    file: string;
  }

  interface CancelledUploads {
    cancelled: number;
  }

  interface CellEdit {
    text: string;
    before?: string | null;
  }

  interface CellJson {
    paper: string;
    column: string;
    state: "waiting" | "running" | "found" | "not_found" | "failed" | "edited";
    findings: (FindingJson)[];
    closest: FindingJson | null;
    edit: string;
    edit_number: number | null;
    stale: boolean;
    error: ErrorBody | null;
    changed: number;
  }

  interface ChangedCells {
    cells: (CellJson)[];
    running: (string)[];
    reload: boolean;
    changed: number;
    found: number;
    not_found: number;
    waiting: number;
    failed: number;
    filling: boolean;
    problem: ErrorBody | null;
  }

  interface ChangedPapers {
    changed: number;
  }

  interface ChangedSettings {
    settings: SettingsJson;
    needs_rebuild: string;
  }

  interface ChatReply {
    standalone_question: string;
    style: "plain" | "report";
    answer: string;
    searched: string;
    refused: boolean;
    remark: string;
    sentences: (SentenceJson)[];
    dropped_sentences: number;
    left_out: (LeftOutJson)[];
    notice: string;
    missing: (string)[];
    warnings: (string)[];
    instruction: UsedInstructionJson | null;
    model_failed: boolean;
    citations: (CitationJson)[];
    hits: (HitJson)[];
    models: Record<string, string>;
    message: string;
    sources_used: (string)[];
    elapsed_ms: number;
    conversation: string;
    turn: number;
    scope: ScopeJson;
    selection: SelectionJson | null;
    trace: TraceJson | null;
    evidence_profile: EvidenceProfileJson | null;
    feedback: "" | "good" | "bad";
    parent: number;
    branches: (number)[];
    stopped: boolean;
    key: string;
  }

  interface ChatRequest {
    year?: (string)[];
    author?: (string)[];
    venue?: (string)[];
    section?: (string)[];
    collection?: (string)[];
    tag?: (string)[];
    cited_by?: (string)[];
    category?: (string)[];
    project?: (string)[];
    papers?: (string)[];
    message: string;
    conversation?: string | null;
    after?: number | null;
    replaces?: number | null;
    key?: string | null;
    listed?: boolean;
    top_k?: number | null;
    selection?: SelectionRequest | null;
    use_reranker?: boolean;
    model?: string | null;
    style?: "plain" | "report";
    instruction?: string | null;
    mode?: "quick" | "deep";
  }

  interface CheckingEvent {
    count: number;
  }

  interface Choice {
    index: 0;
    message: ReplyMessage;
    logprobs: null;
    finish_reason: "stop";
  }

  interface ChosenNotes {
    ids: (string)[];
  }

  interface ChosenPapers {
    papers: (string)[];
  }

  interface CitationEdge {
    citing: string;
    cited: string;
  }

  interface CitationJson {
    paper: string;
    file: string;
    title: string;
    venue: string;
    year: number | null;
    page: number;
    label: string;
    quote: string;
    start: number;
    end: number;
    span: [number, number] | null;
    shown: string;
    section: string;
    zotero: string;
    notice: NoticeJson | null;
    evidence: number;
    support: number;
    number: number;
    marks: ([number, number])[];
    differs: "denial" | "number" | "condition" | "";
  }

  interface CitationsEvent {
    citations: (CitationJson)[];
  }

  interface CitingConversation {
    id: string;
    title: string;
    updated: string;
  }

  interface ColumnChanges {
    name?: string | null;
    question?: string | null;
    kind?: "text" | "number" | "yes_no" | "choice" | null;
    unit?: string | null;
    choices?: (string)[] | null;
  }

  interface ColumnJson {
    name: string;
    question: string;
    kind: "text" | "number" | "yes_no" | "choice";
    unit: string;
    choices: (string)[];
    id: string;
  }

  interface CompletionJson {
    id: string;
    object: "chat.completion";
    created: number;
    model: string;
    choices: (Choice)[];
    usage: Usage;
  }

  interface CompletionRequest {
    model: string;
    messages: (Message)[];
    stream?: boolean | null;
    stream_options?: StreamOptions | null;
    n?: number | null;
    tool_choice?: any;
    response_format?: ResponseFormat | null;
  }

  interface ConfidenceJson {
    value: number;
    level: "medium" | "low";
  }

  interface ContentPart {
    type: string;
    text: string;
  }

  interface Conversation {
    id: string;
    title: string;
    updated: string;
    pinned: boolean;
    turns: (ChatReply)[];
    unanswered: (UnansweredJson)[];
  }

  interface ConversationChanges {
    title?: string | null;
    pinned?: boolean | null;
  }

  interface ConversationList {
    conversations: (ConversationSummary)[];
  }

  interface ConversationSummary {
    id: string;
    title: string;
    updated: string;
    turns: number;
    pinned: boolean;
    running: number;
  }

  interface ConversationsEvent {
    changed: (string)[];
    deleted: (string)[];
  }

  interface DeletedLog {
    deleted: number;
  }

  interface DifferenceJson {
    some: (QuoteJson)[];
    others: (QuoteJson)[];
  }

  interface DiscoverReply {
    works: (WorkJson)[];
    notices: (string)[];
  }

  interface EmbeddingJson {
    object: "embedding";
    index: number;
    embedding: (number)[] | string;
  }

  interface EmbeddingRequest {
    model: string;
    input: string | (string)[];
    encoding_format?: "float" | "base64" | null;
    dimensions?: number | null;
    input_type?: "query" | "document" | "passage" | null;
  }

  interface EmbeddingUsage {
    prompt_tokens: number;
    total_tokens: number;
  }

  interface EmbeddingsJson {
    object: "list";
    data: (EmbeddingJson)[];
    model: string;
    usage: EmbeddingUsage;
  }

  interface EmptiedJson {
    deleted: number;
    stay: (string)[];
  }

  interface ErrorBody {
    error: string;
    remedy: string;
  }

  interface EvidenceEventJson {
    event: "evidence";
    part: string;
    paper: string;
    file: string;
    title: string;
    pages: [number, number];
    text: string;
    page_breaks: (number)[];
    relevance: number | null;
    summary: string;
  }

  interface EvidenceProfileJson {
    basis: BasisJson;
    confidence: ConfidenceJson | null;
    agreements: ((QuoteJson)[])[];
    differences: (DifferenceJson)[];
    open_questions: (QuoteJson)[];
    age: AgeJson;
    compared_by: string;
    calls: number;
  }

  interface FailureJson {
    file: string;
    error: string;
    remedy: string;
  }

  interface FailuresEvent {
  }

  interface FeedbackRequest {
    conversation: string;
    turn: number;
    feedback: "good" | "bad";
  }

  interface FetchDoneEvent {
    added: number;
    unchanged: number;
    failed: number;
  }

  interface FetchFailedEvent {
    id: string;
    title: string;
    error: string;
    remedy: string;
  }

  interface FetchNoticeEvent {
    text: string;
  }

  interface FetchProgressEvent {
    id: string;
    title: string;
    stage: "downloading" | "reading" | "embedding";
    done: number;
    of: number;
  }

  interface FetchRequest {
    ids: (string)[];
  }

  interface FetchedEvent {
    id: string;
    status: "added" | "replaced" | "unchanged" | "duplicate" | "failed" | "pruned";
    paper: PaperJson;
    notes: (string)[];
  }

  interface FieldsJson {
    title: TextFieldJson;
    authors: AuthorsFieldJson;
    year: YearFieldJson;
    venue: TextFieldJson;
    doi: TextFieldJson;
    arxiv: TextFieldJson;
    date: TextFieldJson;
    categories: ListFieldJson;
    abstract: TextFieldJson;
    kind: TextFieldJson;
    volume: TextFieldJson;
    issue: TextFieldJson;
    pages: TextFieldJson;
    publisher: TextFieldJson;
    url: TextFieldJson;
    genre: TextFieldJson;
    citation_key: TextFieldJson;
    bibliography: TextFieldJson;
    tags: ListFieldJson;
    collections: ListFieldJson;
    further: PairsFieldJson;
    zotero: TextFieldJson;
  }

  interface FillRequest {
    again?: ("failed" | "not_found" | "stale")[];
  }

  interface FilterRequest {
    year?: (string)[];
    author?: (string)[];
    venue?: (string)[];
    section?: (string)[];
    collection?: (string)[];
    tag?: (string)[];
    cited_by?: (string)[];
    category?: (string)[];
    project?: (string)[];
    papers?: (string)[];
  }

  interface FindingJson {
    quote: string;
    page: number;
    label: string;
    section: string;
    start: number;
    end: number;
    span: [number, number];
    value: string;
    number: number | null;
    unit: string;
    by_model: boolean;
  }

  interface FolderJson {
    name: string;
    path: string;
  }

  interface FolderListing {
    path: string;
    parent: string;
    folders: (FolderJson)[];
    is_cut: boolean;
    pdfs: number;
    is_more: boolean;
    places: (FolderJson)[];
  }

  interface HeadingJson {
    start: number;
    end: number;
    level: number;
    title: string;
  }

  interface Health {
    status: "ready" | "empty";
    store: StoreJson | null;
    fingerprint: Record<string, string>;
    models: Record<string, string>;
    better: (string)[];
    chat_models: (string)[];
    model: string;
    logged: boolean;
    online: boolean;
    network: string;
    max_file_mb: number;
  }

  interface HelloEvent {
    generation: number;
  }

  interface HitJson {
    paper: string;
    file: string;
    title: string;
    pages: [number, number];
    score: number;
    dense: number | null;
    bm25: number | null;
    text: string;
    page_breaks: (number)[];
    span: [number, number] | null;
    section: string;
    notice: NoticeJson | null;
  }

  interface InnerCitationJson {
    start: number;
    end: number;
    page: number;
    entry: (number)[];
  }

  interface InstructionEdits {
    name?: string | null;
    text?: string | null;
  }

  interface InstructionJson {
    id: string;
    name: string;
    text: string;
    ready: boolean;
  }

  interface InstructionList {
    instructions: (InstructionJson)[];
    projects: Record<string, string>;
  }

  interface KnownModel {
    name: string;
    source: "builtin" | "ollama" | "openai" | "files";
    use: "answers" | "search" | "ranking" | "checking";
    bytes: number | null;
    in_use: boolean;
  }

  interface KnownModels {
    models: (KnownModel)[];
    servers: (ModelPlaceJson)[];
    wanted: (string)[];
  }

  interface LeftOutJson {
    text: string;
    reason: string;
  }

  interface LibraryCitations {
    edges: (CitationEdge)[];
  }

  interface LikePaperJson {
    paper: string;
    title: string;
    year: number | null;
  }

  interface LinkJson {
    box: [number, number, number, number];
    page: number | null;
    uri: string;
    at: (number)[] | null;
  }

  interface ListFieldJson {
    origin: "" | "page" | "pdf metadata" | "identifier" | "file date" | "cited works" | "file name" | "arxiv" | "openalex" | "crossref" | "semanticscholar" | "europepmc" | "bibliography" | "zotero" | "person";
    sure: boolean;
    value: (string)[];
  }

  interface ListedPaperJson {
    id: string;
    key: string;
    file: string;
    title: string;
    authors: (string)[];
    year: number | null;
    venue: string;
    doi: string;
    arxiv: string;
    date: string;
    categories: (string)[];
    tags: (string)[];
    collections: (string)[];
    unsure: (string)[];
    pages: number;
    chunks: number;
    added: string;
    problems: (string)[];
    notice: NoticeJson | null;
    match: PaperMatchJson | null;
    read: string;
    read_page: number;
  }

  interface LogJson {
    questions: (LoggedQuestion)[];
    count: number;
    logged: boolean;
  }

  interface LoggedQuestion {
    asked: string;
    question: string;
    answer: string;
    model: string;
    feedback: "" | "good" | "bad";
    sources: number;
  }

  interface ManyEdits {
    papers: (string)[];
    add_tags?: (string)[];
    remove_tags?: (string)[];
    add_collections?: (string)[];
    remove_collections?: (string)[];
    edits?: PaperEdits;
  }

  interface MatchedEntry {
    key: string;
    paper: string;
    title: string;
    changes: (string)[];
  }

  interface Message {
    role: "system" | "developer" | "user" | "assistant" | "tool" | "function";
    content: string | (ContentPart)[] | null;
  }

  interface MissingPaper {
    paper: string;
    title: string;
  }

  interface MissingRequest {
    question: string;
    missing?: (string)[];
  }

  interface ModelJson {
    id: string;
    object: "model";
    created: number;
    owned_by: "folio";
  }

  interface ModelPlaceJson {
    kind: "ollama" | "openai";
    url: string;
    version: string;
    is_local: boolean;
  }

  interface ModelServerJson {
    url: string;
    program: string;
    chat_models: (string)[];
    settings: string;
  }

  interface ModelServerList {
    servers: (ModelServerJson)[];
  }

  interface ModelsJson {
    object: "list";
    data: (ModelJson)[];
  }

  interface NewColumn {
    name: string;
    question?: string;
    kind?: "text" | "number" | "yes_no" | "choice";
    unit?: string;
    choices?: (string)[];
  }

  interface NewInstruction {
    name: string;
    text: string;
  }

  interface NewNote {
    quotes: (SpanOfPaper | WordsOfPaper | PlaceOfPaper)[];
    colour?: "yellow" | "green" | "blue" | "pink" | "";
    text?: string;
    statement?: string;
    conversation?: string | null;
    turn?: number | null;
  }

  interface NewProject {
    papers?: (string)[];
    rules?: (PaperRule_Input)[];
    conversations?: (string)[];
    notes?: (string)[];
    tables?: (string)[];
    name: string;
    about?: string;
    copy_of?: string | null;
  }

  interface NewRows {
    papers: (string)[];
  }

  interface NewTable {
    name?: string;
    project?: string;
    filter?: TableFilter_Input;
    follows?: boolean;
    columns?: (NewColumn)[];
    fill?: boolean;
  }

  interface NoteEdits {
    text?: string | null;
    colour?: "yellow" | "green" | "blue" | "pink" | "" | null;
    before?: string | null;
  }

  interface NoteJson {
    id: string;
    quotes: (NoteQuoteJson)[];
    colour: "yellow" | "green" | "blue" | "pink" | "";
    text: string;
    statement: string;
    conversation: string | null;
    turn: number | null;
    paper: string;
    file: string;
    title: string;
    created: string;
    updated: string;
    zotero: string;
    is_annotation: boolean;
    shade: string;
  }

  interface NoteList {
    notes: (NoteJson)[];
    count: number;
  }

  interface NoteQuoteJson {
    paper: string;
    title: string;
    file: string;
    start: number;
    end: number;
    page: number;
    label: string;
    quote: string;
    area: (number)[] | null;
    place: "here" | "moved" | "lost" | "removed";
  }

  interface NotesEvent {
  }

  interface NoticeJson {
    kind: "retraction" | "withdrawal" | "removal" | "partial-retraction" | "expression-of-concern" | "correction" | "older-version" | "same-paper" | "reinstatement" | "new-version";
    date: string;
    link: string;
    source: "openalex" | "semanticscholar" | "crossref" | "arxiv" | "europepmc";
    mark: string;
    text: string;
  }

  interface OpenAIError {
    error: OpenAIErrorBody;
  }

  interface OpenAIErrorBody {
    message: string;
    type: string;
    param: string | null;
    code: string | null;
  }

  interface OpenedRequest {
    conversation: string;
    turn: number;
    paper: string;
    page: number;
  }

  interface OutlineJson {
    title: string;
    level: number;
    kind: "abstract" | "introduction" | "methods" | "results" | "discussion" | "conclusion" | "limitations" | "references" | "acknowledgements" | "appendix" | "caption" | "footnote" | "boilerplate" | "algorithm" | "other";
    page: number;
    start: number;
    end: number;
  }

  interface OwnQuestionsJson {
    questions: number;
    opened: number;
    bad: number;
    logged: boolean;
    state: "idle" | "running" | "failed";
    done: number;
    total: number;
    problem: string;
    result: OwnResultJson | null;
  }

  interface OwnResultJson {
    questions: number;
    opened: number;
    now: TriedJson;
    others: (TriedJson)[];
    missed: (string)[];
  }

  interface PageText {
    page: number;
    label: string;
    width: number;
    height: number;
    start: number;
    end: number;
    text: string;
    words: ((number)[])[];
    placed: boolean;
    direction: "ltr" | "rtl";
    headings: (HeadingJson)[];
    paragraphs: ((number)[])[];
    links: (LinkJson)[];
    citations: (InnerCitationJson)[];
    references: ((number)[])[];
  }

  interface PairsFieldJson {
    origin: "" | "page" | "pdf metadata" | "identifier" | "file date" | "cited works" | "file name" | "arxiv" | "openalex" | "crossref" | "semanticscholar" | "europepmc" | "bibliography" | "zotero" | "person";
    sure: boolean;
    value: ([string, string])[];
  }

  interface PaperAbout {
    abstract: string;
    quotes: (AboutQuoteJson)[];
    references: (ReferenceJson)[];
    cited_here_by: (LikePaperJson)[];
    similar: (SimilarPaperJson)[];
    conversations: (CitingConversation)[];
    notes: number;
  }

  interface PaperCitations {
    known: boolean;
    references: (WorkJson)[];
    cited_by: (WorkJson)[];
    reference_count: number;
    cited_by_count: number;
  }

  interface PaperDetails {
    id: string;
    key: string;
    file: string;
    title: string;
    authors: (string)[];
    year: number | null;
    venue: string;
    doi: string;
    arxiv: string;
    date: string;
    categories: (string)[];
    tags: (string)[];
    collections: (string)[];
    unsure: (string)[];
    pages: number;
    chunks: number;
    added: string;
    problems: (string)[];
    notice: NoticeJson | null;
    files: (string)[];
    citation_key: string;
    fields: FieldsJson;
    sections: (SectionJson)[];
    notices: (NoticeJson)[];
    outline: (OutlineJson)[];
    sizes: ((number)[])[];
    labels: (string)[];
    bibtex: string;
    reference: string;
    zotero: string;
  }

  interface PaperEdits {
    title?: string | null;
    authors?: (PersonJson_Input | string)[] | null;
    year?: number | "" | null;
    venue?: string | null;
    doi?: string | null;
    arxiv?: string | null;
    abstract?: string | null;
    kind?: string | null;
    volume?: string | null;
    issue?: string | null;
    pages?: string | null;
    publisher?: string | null;
    url?: string | null;
    citation_key?: string | null;
    date?: string | null;
    categories?: (string)[] | null;
    tags?: (string)[] | null;
  }

  interface PaperFoundJson {
    paper: string;
    file: string;
    title: string;
  }

  interface PaperJson {
    id: string;
    key: string;
    file: string;
    title: string;
    authors: (string)[];
    year: number | null;
    venue: string;
    doi: string;
    arxiv: string;
    date: string;
    categories: (string)[];
    tags: (string)[];
    collections: (string)[];
    unsure: (string)[];
    pages: number;
    chunks: number;
    added: string;
    problems: (string)[];
    notice: NoticeJson | null;
  }

  interface PaperList {
    papers: (ListedPaperJson)[];
    failures: (FailureJson)[];
    notice: string;
  }

  interface PaperMatchJson {
    label: string;
    score: number;
    bm25: number | null;
    dense: number | null;
    words: (string)[];
    pages: [number, number] | null;
    section: string;
  }

  interface PaperRule_Input {
    year: (string)[];
    author: (string)[];
    venue: (string)[];
    section: (string)[];
    collection: (string)[];
    tag: (string)[];
    cited_by: (string)[];
    category: (string)[];
  }

  interface PaperRule_Output {
    year: (string)[];
    author: (string)[];
    venue: (string)[];
    section: (string)[];
    collection: (string)[];
    tag: (string)[];
    cited_by: (string)[];
    category: (string)[];
  }

  interface PapersEvent {
    added: (string)[];
    changed: (string)[];
    removed: (string)[];
    generation: number;
  }

  interface PapersEventJson {
    event: "papers";
    query: string;
    papers: (PaperFoundJson)[];
  }

  interface PartChanges {
    add?: ProjectParts;
    remove?: ProjectParts;
  }

  interface PersonJson_Input {
    family: string;
    given: string;
  }

  interface PersonJson_Output {
    family: string;
    given: string;
  }

  interface PlaceOfPaper {
    paper: string;
    page: number;
    area: (number)[] | null;
  }

  interface PlacesJson {
    count: number;
    hits: ((number)[])[];
  }

  interface ProgressEvent {
    stage: "reading" | "embedding";
    done: number;
    of: number;
  }

  interface ProjectChanges {
    name?: string | null;
    about?: string | null;
  }

  interface ProjectDetails {
    id: string;
    name: string;
    about: string;
    own: boolean;
    papers: number;
    updated: string;
    paper_ids: (string)[];
    by_hand: (string)[];
    missing: (MissingPaper)[];
    excluded: (MissingPaper)[];
    rules: (PaperRule_Output)[];
    conversations: (ConversationSummary)[];
    notes: number;
    note_ids: (string)[];
    tables: (string)[];
  }

  interface ProjectInstruction {
    instruction: string | null;
  }

  interface ProjectList {
    projects: (ProjectSummary)[];
  }

  interface ProjectParts {
    papers: (string)[];
    rules: (PaperRule_Input)[];
    conversations: (string)[];
    notes: (string)[];
    tables: (string)[];
  }

  interface ProjectSummary {
    id: string;
    name: string;
    about: string;
    own: boolean;
    papers: number;
    updated: string;
  }

  interface ProjectsEvent {
  }

  interface ProposedSearches {
    searches: (string)[];
  }

  interface PullRequest {
    model: string;
  }

  interface QuoteJson {
    paper: string;
    file: string;
    title: string;
    venue: string;
    year: number | null;
    page: number;
    label: string;
    quote: string;
    start: number;
    end: number;
    span: [number, number] | null;
    shown: string;
    section: string;
    zotero: string;
    notice: NoticeJson | null;
  }

  interface ReadingRequest {
    page: number;
  }

  interface RebuildRequest {
    changes?: Record<string, string | null>;
    drops_missing?: boolean;
  }

  interface ReferenceJson {
    text: string;
    paper: string;
    title: string;
    year: number | null;
    start: number;
    end: number;
    page: number;
  }

  interface RemovedFiles {
    removed: (RemovedJson)[];
  }

  interface RemovedJson {
    file: string;
    kept_at: string | null;
  }

  interface RemovedPaperJson {
    paper: string;
    title: string;
    file: string;
    removed: string;
  }

  interface RemovedPapers {
    papers: (RemovedPaperJson)[];
  }

  interface ReplyMessage {
    role: "assistant";
    content: string;
    refusal: null;
    annotations: (Annotation)[];
  }

  interface ResponseFormat {
    type: string;
  }

  interface Restored {
    conversations: number;
    questions: number;
    notes: number;
    edits: number;
  }

  interface RestoredPapers {
    restored: (ListedPaperJson)[];
    failed: (FailureJson)[];
  }

  interface RetriedUploads {
    retried: number;
  }

  interface RetrievedEvent {
    conversation: string;
    turn: number;
    hits: (HitJson)[];
    elapsed_ms: number;
  }

  interface ReviewJson {
    id: string;
    title: string;
    state: "waiting" | "reading" | "comparing" | "done" | "stopped" | "failed";
    done: number;
    total: number;
    error: ErrorBody | null;
    blocks: (BlockJson)[];
  }

  interface ReviewRequest {
    year?: (string)[];
    author?: (string)[];
    venue?: (string)[];
    section?: (string)[];
    collection?: (string)[];
    tag?: (string)[];
    cited_by?: (string)[];
    category?: (string)[];
    project?: (string)[];
    papers?: (string)[];
    title?: string;
    questions?: (string)[];
  }

  interface RowJson {
    paper: string;
    key: string;
    label: string;
    title: string;
    year: number | null;
    file: string;
    state: "here" | "removed";
  }

  interface RunJson {
    text: string;
    style: "plain" | "bold" | "italic";
    link: string;
  }

  interface SavedEvent {
    file: string;
  }

  interface ScopeJson {
    year: (string)[];
    author: (string)[];
    venue: (string)[];
    section: (string)[];
    collection: (string)[];
    tag: (string)[];
    cited_by: (string)[];
    category: (string)[];
    project: (string)[];
    papers: (ScopePaperJson)[];
  }

  interface ScopeLine {
    line: string;
    papers: number;
    restricted: boolean;
  }

  interface ScopePaperJson {
    paper: string;
    file: string;
    title: string;
  }

  interface SearchAgainEventJson {
    event: "search_again";
    how: "reformulate" | "expand" | "offset";
    why: string;
    queries: (string)[];
  }

  interface SearchEndedEventJson {
    event: "search_ended";
    why: string;
  }

  interface SearchHitJson {
    paper: string;
    file: string;
    title: string;
    pages: [number, number];
    score: number;
    dense: number | null;
    bm25: number | null;
    text: string;
    page_breaks: (number)[];
    span: [number, number] | null;
    section: string;
    notice: NoticeJson | null;
    noted: ([number, number])[];
  }

  interface SearchReply {
    query: string;
    hits: (SearchHitJson)[];
    notice: string;
    models: Record<string, string>;
    elapsed_ms: number;
  }

  interface SearchRequest {
    year?: (string)[];
    author?: (string)[];
    venue?: (string)[];
    section?: (string)[];
    collection?: (string)[];
    tag?: (string)[];
    cited_by?: (string)[];
    category?: (string)[];
    project?: (string)[];
    papers?: (string)[];
    query: string;
    top_k?: number;
    use_reranker?: boolean;
  }

  interface SearchesRequest {
    question: string;
    searches: (string)[];
  }

  interface SectionJson {
    level: number;
    number: string;
    title: string;
    kind: "abstract" | "introduction" | "methods" | "results" | "discussion" | "conclusion" | "limitations" | "references" | "acknowledgements" | "appendix" | "caption" | "footnote" | "boilerplate" | "algorithm" | "other";
    pages: [number, number];
  }

  interface SelectionJson {
    paper: string;
    start: number;
    end: number;
    page: number;
    text: string;
  }

  interface SelectionRequest {
    paper: string;
    start: number;
    end: number;
    quote?: string;
    everywhere?: boolean;
  }

  interface SentenceJson {
    text: string;
    section: string;
    citations: (CitationJson)[];
    against: (CitationJson)[];
    outcome: "quoted" | "reworded";
    verified_by: string;
    instead_of: string;
    marks: ([number, number])[];
    short: [number, number] | null;
  }

  interface SettingChanges {
    changes: Record<string, string | null>;
  }

  interface SettingJson {
    name: string;
    value: string;
    origin: "environment" | "file" | "checkout" | "default";
    choices: (string)[];
  }

  interface SettingsJson {
    changeable: boolean;
    file: string;
    settings: (SettingJson)[];
    rebuild: string;
    logged: boolean;
    is_shared: boolean;
  }

  interface SimilarPaperJson {
    paper: string;
    title: string;
    year: number | null;
    score: number;
  }

  interface SizeJson {
    what: "library" | "indexes" | "user" | "copies" | "uploads" | "cache" | "papers";
    bytes: number;
    place: string;
  }

  interface SpanOfPaper {
    paper: string;
    start: number;
    end: number;
    quote: string;
  }

  interface StorageJson {
    sizes: (SizeJson)[];
    copies: (string)[];
  }

  interface StoreJson {
    folder: string;
    papers: number;
    chunks: number;
    bytes: number;
    generation: number;
  }

  interface StreamOptions {
    include_usage: boolean | null;
  }

  interface SuggestedColumnJson {
    name: string;
    question: string;
    kind: "text" | "number" | "yes_no" | "choice";
    unit: string;
    choices: (string)[];
    papers: number;
  }

  interface SuggestedColumns {
    columns: (SuggestedColumnJson)[];
  }

  interface SuggestedQuestions {
    questions: (string)[];
  }

  interface TableChanges {
    name?: string | null;
    project?: string | null;
    follows?: boolean | null;
    columns?: (string)[] | null;
  }

  interface TableFilter_Input {
    year: (string)[];
    author: (string)[];
    venue: (string)[];
    section: (string)[];
    collection: (string)[];
    tag: (string)[];
    cited_by: (string)[];
    category: (string)[];
    project: (string)[];
    papers: (string)[];
  }

  interface TableFilter_Output {
    year: (string)[];
    author: (string)[];
    venue: (string)[];
    section: (string)[];
    collection: (string)[];
    tag: (string)[];
    cited_by: (string)[];
    category: (string)[];
    project: (string)[];
    papers: (string)[];
  }

  interface TableJson {
    id: string;
    name: string;
    project: string;
    found: number;
    not_found: number;
    waiting: number;
    failed: number;
    filling: boolean;
    problem: ErrorBody | null;
    updated: string;
    scope: string;
    filter: TableFilter_Output;
    follows: boolean;
    columns: (ColumnJson)[];
    rows: (RowJson)[];
    cells: (CellJson)[];
    changed: number;
  }

  interface TableList {
    tables: (TableSummaryJson)[];
  }

  interface TableSummaryJson {
    id: string;
    name: string;
    project: string;
    found: number;
    not_found: number;
    waiting: number;
    failed: number;
    filling: boolean;
    problem: ErrorBody | null;
    updated: string;
    rows: number;
    columns: number;
  }

  interface TablesEvent {
    changed: (string)[];
    deleted: (string)[];
  }

  interface TaskJson {
    id: string;
    kind: "rebuild" | "repair" | "pull" | "read" | "zotero" | "sync";
    about: string;
    reason: string;
    state: "running" | "stopping" | "done" | "failed" | "cancelled";
    step: string;
    done: number;
    of: number;
    result: string;
    error: ErrorBody | null;
    begun: string;
  }

  interface TasksJson {
    tasks: (TaskJson)[];
  }

  interface TextFieldJson {
    origin: "" | "page" | "pdf metadata" | "identifier" | "file date" | "cited works" | "file name" | "arxiv" | "openalex" | "crossref" | "semanticscholar" | "europepmc" | "bibliography" | "zotero" | "person";
    sure: boolean;
    value: string;
  }

  interface ThinkingEvent {
    model: string;
  }

  interface TraceJson {
    assessor: string;
    rounds: number;
    calls: number;
    seconds: number;
    events: (PapersEventJson | EvidenceEventJson | SearchAgainEventJson | SearchEndedEventJson)[];
    left_out: number;
  }

  interface TriedJson {
    settings: Record<string, string>;
    found: number;
    gained: number;
    lost: number;
    verdict: "better" | "worse" | "unclear" | "same" | "more passages";
  }

  interface UnansweredJson {
    message: string;
    conversation: string;
    turn: number;
    parent: number;
    branches: (number)[];
    key: string;
    selection: SelectionJson | null;
    model: string | null;
    state: "running" | "failed" | "stopped";
    error: AnswerErrorJson | null;
  }

  interface UnmatchedEntry {
    key: string;
    title: string;
    why: string;
  }

  interface UploadJson {
    id: string;
    file: string;
    state: "waiting" | "reading" | "embedding" | "stopping" | "added" | "failed";
    done: number;
    of: number;
    status: "added" | "replaced" | "unchanged" | "duplicate" | "failed" | "pruned" | null;
    paper: string | null;
    title: string;
    pages: number;
    notes: (string)[];
    error: string;
    remedy: string;
  }

  interface UploadsEvent {
    waiting: number;
    running: number;
    done: number;
  }

  interface UploadsJson {
    uploads: (UploadJson)[];
    active: boolean;
    notice: string;
  }

  interface UrlCitation {
    start_index: number;
    end_index: number;
    url: string;
    title: string;
  }

  interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
  }

  interface UsedInstructionJson {
    id: string;
    name: string;
    text: string;
  }

  interface WordsOfPaper {
    paper: string;
    quote: string;
    page: number | null;
  }

  interface WorkJson {
    id: string;
    link: string;
    title: string;
    authors: (string)[];
    year: number | null;
    date: string;
    categories: (string)[];
    venue: string;
    abstract: string;
    doi: string;
    arxiv: string;
    cited: number | null;
    open: boolean | null;
    retracted: boolean;
    paper: string | null;
    other_version: boolean;
    file: string;
    sentence: string;
  }

  interface YearFieldJson {
    origin: "" | "page" | "pdf metadata" | "identifier" | "file date" | "cited works" | "file name" | "arxiv" | "openalex" | "crossref" | "semanticscholar" | "europepmc" | "bibliography" | "zotero" | "person";
    sure: boolean;
    value: number | null;
  }

  interface ZoteroJson {
    folder: string;
    pdfs: number;
    is_followed: boolean;
    problem: ErrorBody | null;
  }
}
