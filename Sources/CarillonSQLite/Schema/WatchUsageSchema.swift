/// The store writes how many watches and callbacks an app has with the rows that it writes, as ``WatchRules`` says.
enum WatchUsageSchema {
    static let changes = """
        DROP TRIGGER watch_enters;
        DROP TRIGGER watch_leaves;
        DROP TRIGGER disconnect_callback_enters;
        DROP TRIGGER disconnect_callback_leaves;
        """
}
