import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Response {
    /// A response with a JSON body. A body that cannot be encoded makes it a problem document with ``ErrorCode/internalError``.
    init(status: HTTPResponse.Status, json value: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            let data = try encoder.encode(value)
            self.init(status: status, text: Array(data), type: "application/json")
        } catch {
            self.init(refusal: Refusal(.internalError, "The server cannot encode the response.", retryAfterSeconds: 5))
        }
    }

    init(status: HTTPResponse.Status, text: [UInt8], type: String) {
        self.init(
            status: status,
            headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: text)))
    }
}
