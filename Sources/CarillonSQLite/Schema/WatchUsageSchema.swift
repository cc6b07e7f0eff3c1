/// Removes triggers. The store writes the numbers of watches and callbacks of an app with their rows, as ``WatchRules`` decides.
enum WatchUsageSchema {
    static let changes = """
        DROP TRIGGER watch_enters;
        DROP TRIGGER watch_leaves;
        DROP TRIGGER disconnect_callback_enters;
        DROP TRIGGER disconnect_callback_leaves;
        """
}
