import HTTPTypes
import Hummingbird
import Testing

@testable import CarillonServer

struct ResponseTests {
    @Test func `a body that cannot be encoded makes the response a problem document`() {
        let response = Response(status: .ok, json: [Double.nan])
        #expect(response.status == .internalServerError)
        #expect(response.headers[.contentType] == "application/problem+json")
    }

    @Test func `a body that can be encoded is sent with its status`() {
        let response = Response(status: .created, json: ["a": "b/c"])
        #expect(response.status == .created)
        #expect(response.headers[.contentType] == "application/json")
        #expect(response.body.contentLength == #"{"a":"b/c"}"#.utf8.count)
    }
}
