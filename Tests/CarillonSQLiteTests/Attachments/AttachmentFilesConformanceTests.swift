import StoreConformance
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AttachmentFilesConformanceTests {
    @Test(arguments: AttachmentFilesCase.all)
    func `a folder of attachments does`(case: AttachmentFilesCase) async throws { try await `case`.run(AttachmentFolders()) }

    /// Nothing in the protocol needs a local path, a rename or a list in an order.
    @Test(arguments: AttachmentFilesCase.all)
    func `a bucket of an object store does`(case: AttachmentFilesCase) async throws { try await `case`.run(Buckets()) }
}
