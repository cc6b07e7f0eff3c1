// CarillonSQLite: the embedded store.
//
// One SQLite file in the data directory contains all durable data of Carillon. All SQL is in this module. `SQLiteStore` opens the
// file. Each protocol of the core's stores is an extension of it, in a file of that name. `TransactionGroup` combines the writes
// of many callers in few commits. `InboxTransaction` is one commit of inboxes, and `WatchTransaction` contains the changes of a
// commit to watches and their calls.
