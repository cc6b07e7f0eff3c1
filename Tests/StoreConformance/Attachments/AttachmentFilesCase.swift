package import TestStores

/// Something that every kind of ``AttachmentFiles`` must do. The tests of a kind run ``all`` of them over its maker.
package struct AttachmentFilesCase: Sendable, CustomStringConvertible {
    package let description: String
    package let run: @Sendable (any AttachmentFilesMaker) async throws -> Void

    init(_ description: String, _ run: @escaping @Sendable (any AttachmentFilesMaker) async throws -> Void) {
        self.description = description
        self.run = run
    }

    package static let all: [AttachmentFilesCase] = [uploads, interruptions, readers, lists].flatMap { $0 }
}
