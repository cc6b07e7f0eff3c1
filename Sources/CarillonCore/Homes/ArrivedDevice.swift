/// A device that connected, with the first envelopes of its inbox.
package struct ArrivedDevice: Sendable {
    package var device: Device
    package var page: InboxPage
    /// The revisions of the device's reports that the server has stored.
    package var reported: ReportedRevisions
}
