/// A number in the table `counter`. Numbers of allowances of attachments are not listed: their names contain the allowance.
enum CounterName: String, Sendable {
    // Numbers of the whole store.
    case envelopes
    case envelopeBytes = "envelope_bytes"

    // Numbers of an app.
    case devices, items, subscriptions, watches, callbacks

    /// The name in SQL. Statements of different numbers have different texts, so that a trace shows which number they read.
    var sql: String { "'\(rawValue)'" }
}
