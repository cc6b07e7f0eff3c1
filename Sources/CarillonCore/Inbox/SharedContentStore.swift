/// Stores bodies that many envelopes share (``Envelope/Content/shared``).
///
/// Each method is one transaction. It throws ``StoreFault`` if the store cannot be written; then nothing is changed.
package protocol SharedContentStore: Sendable {
    /// Stores a body until it is released and the last envelope with it has left its inbox. Each call returns another identifier,
    /// also for equal bodies.
    func addContent(_ body: [UInt8]) async throws -> SharedContentID
    /// Notes that no new envelope will use a body. A later append of an envelope with the body can fail. A second call changes
    /// nothing.
    func releaseContent(_ id: SharedContentID) async throws
}
