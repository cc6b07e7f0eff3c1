package import CarillonCore

/// Makes places for attachments, and has the functions for tests beyond ``AttachmentFiles``.
package protocol AttachmentFilesMaker: Sendable {
    /// Returns a place without attachments.
    func makePlace() async throws -> any AttachmentPlace
}

package protocol AttachmentPlace: Sendable {
    /// Returns the content of the place, as a process finds it that starts now. The process before was killed.
    func open() async throws -> any AttachmentFiles
    /// Leaves space for so few bytes that no upload can grow by ``AttachmentPlaceLimits/room``.
    func fill() async throws
    func free() async throws
}

package enum AttachmentPlaceLimits {
    /// The number of bytes that do not fit into a full place. A part of them can fit.
    package static let room = 16
}
