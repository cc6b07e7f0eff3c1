// CarillonSQLite: the embedded store.
//
// One SQLite file in the data directory holds everything that Carillon promises to keep. All of SQL is in this room.
// `SQLiteStore` opens the file; each protocol of the core's stores is an extension of it, in a file of that name;
// `TransactionGroup` puts what many callers write into few commits; `InboxTransaction` is one commit of inboxes,
// `WatchTransaction` what a commit does to watches and the calls that they owe.
