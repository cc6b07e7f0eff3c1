/// The result of a read of an inbox.
package enum InboxRead: Equatable, Sendable {
    case page(InboxPage)
    /// The device, or its app, was deleted.
    case deviceGone
}

package struct InboxPage: Equatable, Sendable {
    package var envelopes: [Envelope]
    /// Whether no envelope waited after these.
    package var isComplete: Bool

    package init(envelopes: [Envelope], isComplete: Bool) {
        self.envelopes = envelopes
        self.isComplete = isComplete
    }

    /// The page of an inbox that was not read.
    package static let unread = InboxPage(envelopes: [], isComplete: false)
}
