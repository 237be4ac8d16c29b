"""The routes of evidence tables, and the work behind them.

    GET    /tables?project=                         TableList
    POST   /tables                                  NewTable -> TableJson (201)
    GET    /tables/{id}                             TableJson
    PATCH  /tables/{id}?undo=                       TableChanges -> TableJson
    DELETE /tables/{id}?undo=                       204
    POST   /tables/{id}/columns                     NewColumn -> TableJson (201)
    PATCH  /tables/{id}/columns/{column}?undo=      ColumnChanges -> TableJson
    DELETE /tables/{id}/columns/{column}?undo=      TableJson
    POST   /tables/{id}/rows                        NewRows -> TableJson
    DELETE /tables/{id}/rows/{paper}?undo=          TableJson
    POST   /tables/{id}/fill                        FillRequest -> TableSummaryJson (202)
    POST   /tables/{id}/stop                        204
    POST   /tables/{id}/cells/{column}/{paper}/ask  202: the cell is `running`, then has its new answer
    PUT    /tables/{id}/cells/{column}/{paper}/edit?undo=  CellEdit -> CellJson
    DELETE /tables/{id}/cells/{column}/{paper}/edit?undo=  CellJson
    GET    /tables/{id}/cells?since=N               ChangedCells
    GET    /tables/suggested-columns                FilterRequest as the query -> SuggestedColumns
    GET    /tables/{id}/suggested-columns           SuggestedColumns, without the columns that it has
    GET    /tables/{id}/export?format=csv|markdown|docx|bibtex|json

A change, a fill that goes on and a cell that lands are announced on /events as `tables`: {changed: [ids], deleted:
[ids]}.
"""
