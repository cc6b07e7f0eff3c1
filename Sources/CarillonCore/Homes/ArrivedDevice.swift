/// A device that connected, with the first envelopes of its inbox.
package struct ArrivedDevice: Sendable {
    package var device: Device
    package var page: InboxPage
    /// The revisions that the server has of the device's statements.
    package var said: SaidRevisions
}
