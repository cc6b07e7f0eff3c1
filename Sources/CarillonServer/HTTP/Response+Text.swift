import HTTPTypes
import Hummingbird
import NIOCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Response {
    init(status: HTTPResponse.Status, json value: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // The bodies are our own types, of texts and numbers: encoding them cannot fail.
        let data = (try? encoder.encode(value)) ?? Data()
        self.init(status: status, text: Array(data), type: "application/json")
    }

    init(status: HTTPResponse.Status, text: [UInt8], type: String) {
        self.init(
            status: status,
            headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: text)))
    }
}
