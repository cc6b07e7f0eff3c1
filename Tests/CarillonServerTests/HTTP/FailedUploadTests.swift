import CarillonCore
import CarillonWire
import Crypto
import Foundation
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// An upload that fails, and that no client can continue.
@Suite(.timeLimit(.minutes(5)))
struct FailedUploadTests {
    @Test(arguments: [HTTPField.Name.reprDigest, .contentDigest])
    func `a failed upload leaves no row, no file and no used bytes`(name: HTTPField.Name) async throws {
        let directory = TemporaryDirectory()
        let routes = try await RouteFixture(attachmentFiles: stores.factory.attachmentFiles(of: directory.path))
        let device = try await routes.device()
        let reader = try await routes.request(.post, "/v1/devices", key: device.clientKey)["id"]
        func upload(_ text: String) async throws -> RouteFixture.Answer {
            let digest = Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString()
            return try await routes.request(
                .post, "/v1/attachments?readers=\(reader)", key: device.credential, "data",
                headers: [.init(name: .contentLength, value: "4"), .init(name: name, value: "sha-256=:\(digest):")])
        }
        let failed = try await upload("date")
        #expect(failed.status == 400 && failed.code == "digest_mismatch", "\(failed.status)")
        #expect(try await stores.count(.attachments, in: routes.store) == 0)
        #expect(try await stores.wrongCounters(in: routes.store) == [])
        let files = FileManager.default.enumerator(atPath: directory.path)?.allObjects.compactMap { $0 as? String } ?? []
        #expect(files.filter { $0.split(separator: "/").count > 3 }.isEmpty, "\(files)")
        #expect(try await upload("data").status == 201)
        #expect(try await stores.count(.attachments, in: routes.store) == 1)
    }
}
