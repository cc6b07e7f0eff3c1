/// A number in the table `counter`. Numbers of allowances of attachments are not listed: their names contain the allowance.
enum CounterName: String, Sendable {
    // Of the whole store.
    case envelopes
    case envelopeBytes = "envelope_bytes"

    // Of an app.
    case devices, items, subscriptions, watches, callbacks

    /// The name in a statement. Statements of different numbers have different texts, so that a trace tells them apart.
    var sql: String { "'\(rawValue)'" }
}
