/// A number in the table `counter`. The numbers of attachments are not listed, because their names contain the name of the quota.
enum CounterName: String, Sendable {
    // Numbers of the whole store.
    case envelopes
    case envelopeBytes = "envelope_bytes"

    // Numbers of an app.
    case devices, items, subscriptions, watches, callbacks

    /// The name in SQL. Statements for different numbers have different texts, so that a trace shows which number they read.
    var sql: String { "'\(rawValue)'" }
}
