import CarillonCore
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The addresses of created objects.
@Suite(.timeLimit(.minutes(5)))
struct LocationTests {
    @Test(arguments: ["https://push.example.com", "https://example.com/push-server"])
    func `an upload is located under the public address`(base: String) async throws {
        let directory = TemporaryDirectory()
        let routes = try await RouteFixture(attachmentFiles: stores.factory.attachmentFiles(of: directory.path), base: base)
        let (id, credential, _) = try await routes.device()
        let begun = try await routes.request(
            .post, "/v1/attachments?readers=\(id)", key: credential, "",
            headers: [.init(name: .uploadComplete, value: "?0"), .init(name: .uploadLength, value: "4")])
        #expect(begun.status == 201)
        #expect(begun.headers[.location]?.hasPrefix("\(base)/v1/attachments/0") == true)
    }
}
