# A thin client of a Tacit server: ten functions over its HTTP API. Every number comes with its interval.
#
#   server <- tacit_connect("https://data.example.org")           # the token is in $TACIT_TOKEN
#   tacit_plan(server, "visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon = 1)
#   tacit_ask(server, "visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon = 1)

# Connect to a server. A token goes only to this address, and unencrypted only within this machine.
tacit_connect <- function(url, token = Sys.getenv("TACIT_TOKEN")) {
  is_here <- grepl("^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?(/|$)", url)
  if (!grepl("^https://", url) && !is_here) {
    stop("a token must not travel unencrypted: http is only for this machine; use https://", call. = FALSE)
  }
  if (!nzchar(token)) stop("a token is needed, in the variable TACIT_TOKEN or as token=", call. = FALSE)
  structure(list(url = sub("/+$", "", url), token = token), class = "tacit_server")
}

# The tables that the token may see, with their public clocks.
tacit_tables <- function(server) {
  found <- record_of(send(server, "GET", "tables"))$tables
  data.frame(name = vapply(found, `[[`, "", "name"), hold = vapply(found, `[[`, "", "hold"))
}

# What is public about a table: its unit, its columns and their ranges, its clock, and the rest of its budget.
tacit_describe <- function(server, table) record_of(send(server, "GET", "tables", table))

# What is public about a public table, to join with.
tacit_public <- function(server, name) record_of(send(server, "GET", "public", name))

# What may still be spent on a table.
tacit_budget <- function(server, table) record_of(send(server, "GET", "tables", table, "budget"))

# The cost and the expected error of an answer: free, and no row is read.
tacit_plan <- function(server, table, sql, epsilon = NULL, error = NULL, ...) {
  body <- asking(sql, epsilon, error, ...)
  structure(record_of(send(server, "POST", "tables", table, "plan", body = body)), class = "tacit_plan")
}

# An answer: a data frame with the ends of each interval in columns of their own. It is charged, once: the same question
# again is free. `key` names the request, so that tacit_again can fetch its answer after a broken connection.
tacit_ask <- function(server, table, sql, epsilon = NULL, error = NULL, key = NULL, ...) {
  body <- asking(sql, epsilon, error, ...)
  answer_of(send(server, "POST", "tables", table, "questions", body = body, key = key))
}

# The answer to a question that was asked with this key; NULL while it is unanswered.
tacit_again <- function(server, key) {
  reply <- send(server, "GET", "questions", key)
  if (httr2::resp_status(reply) == 202) NULL else answer_of(reply)
}

# The signed certificate of an answer, by its entry in the ledger.
tacit_certificate <- function(server, number) {
  record_of(send(server, "GET", "answers", format(number, scientific = FALSE), "certificate"))
}

# The numbers of an answer as the text of a CSV file.
tacit_csv <- function(server, number) {
  reply <- send(server, "GET", "answers", paste0(format(number, scientific = FALSE), ".csv"))
  httr2::resp_body_string(reply)
}

print.tacit_server <- function(x, ...) {
  cat("<Tacit server at ", x$url, ">\n", sep = "") # never the token
  invisible(x)
}

print.tacit_plan <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

print.tacit_answer <- function(x, ...) {
  print(as.data.frame(unclass(x), check.names = FALSE), row.names = FALSE, ...)
  facts <- attr(x, "facts")
  spent <- if (isTRUE(facts$free)) "Free: it was answered before." else paste0("Spent ", facts$loss$text, ".")
  cat("\n", facts$reading, "\n", spent, " Left: ", attr(x, "left")$text, ".\n", sep = "")
  invisible(x)
}

# ---- inside ----------------------------------------------------------------------------------------------------------

asking <- function(sql, epsilon, error, ...) {
  amounts <- lapply(Filter(Negate(is.null), list(epsilon = epsilon)), amount)
  jsonlite::toJSON(c(list(sql = sql), amounts, Filter(Negate(is.null), list(error = error, ...))), auto_unbox = TRUE)
}

# An amount as decimal text: the server reads it exactly.
amount <- function(value) if (is.character(value)) value else format(value, digits = 15, scientific = FALSE)

send <- function(server, method, ..., body = NULL, key = NULL) {
  path <- paste(vapply(c(...), utils::URLencode, "", reserved = TRUE), collapse = "/")
  request <- httr2::request(paste0(server$url, "/api/v1/", path))
  request <- httr2::req_method(httr2::req_auth_bearer_token(request, server$token), method)
  request <- httr2::req_options(request, followlocation = FALSE, proxy = "")
  request <- httr2::req_error(request, is_error = function(reply) FALSE)
  if (!is.null(body)) request <- httr2::req_body_raw(request, as.character(body), "application/json")
  if (!is.null(key)) request <- httr2::req_headers(request, `Idempotency-Key` = key)
  reply <- httr2::req_perform(request)
  if (httr2::resp_status(reply) >= 300) stop(refusal(reply))
  reply
}

# A refusal as a condition of the class tacit_refused, with the server's words and its hint.
refusal <- function(reply) {
  problem <- tryCatch(record_of(reply), error = function(e) list())
  words <- c(problem$detail, if (length(problem$hint) && nzchar(problem$hint)) paste("hint:", problem$hint))
  if (!length(words)) words <- paste("the server answered", httr2::resp_status(reply))
  structure(
    class = c("tacit_refused", "error", "condition"),
    list(message = paste(words, collapse = "\n"), call = NULL, kind = problem$error, status = httr2::resp_status(reply))
  )
}

record_of <- function(reply) {
  jsonlite::fromJSON(httr2::resp_body_string(reply), simplifyVector = FALSE, bigint_as_char = TRUE)
}

answer_of <- function(reply) {
  record <- record_of(reply)
  columns <- lapply(seq_along(record$cells$names), function(at) {
    column_of(lapply(record$cells$rows, `[[`, at), record$types[[record$cells$names[[at]]]])
  })
  frame <- as.data.frame(columns, col.names = unlist(record$cells$names), optional = TRUE)
  structure(
    frame,
    class = c("tacit_answer", "data.frame"),
    facts = record$facts,
    left = jsonlite::fromJSON(httr2::resp_header(reply, "Tacit-Left"), simplifyVector = FALSE)
  )
}

# Cells of one type as a vector; values that JSON lacks come as {"$date": ...}. Whole numbers beyond 2^53 stay text.
column_of <- function(cells, type) {
  plain <- lapply(cells, function(cell) if (is.null(cell)) NA else if (is.list(cell)) cell[[1]] else cell)
  values <- unlist(plain)
  switch(if (is.null(type)) "text" else type,
    date = as.Date(as.character(values)),
    timestamp = as.POSIXct(as.character(values), format = "%Y-%m-%dT%H:%M:%OS", tz = "UTC"),
    float = as.numeric(values),
    decimal = as.numeric(values),
    values
  )
}
