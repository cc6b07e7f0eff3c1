/// Bodies that many envelopes point to (``Envelope/Content/shared``).
///
/// Both methods are one transaction each, and throw ``StoreFault`` if the store cannot be written; then nothing is changed.
package protocol SharedContentStore: Sendable {
    /// Keeps a body until it is released and the last envelope that points to it has left. Each call has an identifier of its own, also for
    /// equal bodies.
    func addContent(_ body: [UInt8]) async throws -> SharedContentID
    /// Notes that no further envelope will point to a body; a later append that does may fail. A second call changes nothing.
    func releaseContent(_ id: SharedContentID) async throws
}
