import CarillonWire
import Foundation
import Testing

/// Whether a response is of a Carillon server.
struct ServerResponseTests {
    private let problem = Data(
        #"{"type":"t","title":"t","status":404,"detail":"d","code":"device_unknown"}"#.utf8)

    private func kind<Value>(_ verdict: ServerResponse.Verdict<Value>) -> String {
        switch verdict {
        case .success: "success"
        case .refused(let refusal): "refused \(refusal.code?.rawValue ?? "unread")"
        case .unnamed: "unnamed"
        case .foreign: "foreign"
        }
    }

    @Test(
        arguments: [
            (404, "application/problem+json", "device_unknown", "refused device_unknown"),
            (404, "Application/Problem+JSON; charset=utf-8", "device_unknown", "refused device_unknown"),
            (404, "application/problem+json", "not_of_the_list", "foreign"),
            (404, "application/json", "device_unknown", "foreign"),
            (404, nil, "device_unknown", "foreign"), (302, "application/problem+json", "device_unknown", "foreign"),
        ] as [(Int, String?, String, String)])
    func `a refusal is a problem document with a code of the list`(
        _ status: Int, _ type: String?, _ code: String, _ verdict: String
    ) {
        let text = String(decoding: problem, as: UTF8.self).replacing("device_unknown", with: code)
        let response = ServerResponse(status: status, contentType: type, server: "s", body: Data(text.utf8))
        #expect(kind(response.verdict { $0.json(200, as: [String: Int].self) }) == verdict)
        #expect(kind(response.verdictOnNoContent()) == verdict)
    }

    @Test func `a body that is cut off is no refusal`() {
        let response = ServerResponse(
            status: 404, contentType: ProblemDocument.mediaType, server: "s", body: problem.dropLast())
        #expect(kind(response.verdictOnNoContent()) == "foreign")
    }

    @Test(arguments: [(200, "{}", "success"), (200, "<html>", "foreign"), (201, "{}", "foreign"), (204, "", "foreign")])
    func `a success has the documented form`(_ status: Int, _ body: String, _ verdict: String) {
        let response = ServerResponse(status: status, contentType: nil, server: "s", body: Data(body.utf8))
        #expect(kind(response.verdict { $0.json(200, as: [String: Int].self) }) == verdict)
    }

    @Test(
        arguments: [
            (204, "s", false, "success"), (204, nil, false, "unnamed"), (204, "", false, "unnamed"),
            (204, nil, true, "success"),
            (200, "s", false, "foreign"), (205, "s", true, "foreign"),
        ] as [(Int, String?, Bool, String)])
    func `a 204 needs the server's name, unless the server has none`(
        _ status: Int, _ name: String?, _ isNameless: Bool, _ verdict: String
    ) {
        let response = ServerResponse(status: status, contentType: nil, server: name, body: Data())
        #expect(kind(response.verdictOnNoContent(isNameless: isNameless)) == verdict)
    }

    @Test(
        arguments: [("s", false, "refused unread"), (nil, false, "unnamed"), (nil, true, "refused unread")]
            as [(String?, Bool, String)])
    func `a refusal of HEAD needs the server's name, unless the server has none`(
        _ name: String?, _ isNameless: Bool, _ verdict: String
    ) {
        let response = ServerResponse(
            status: 404, contentType: ProblemDocument.mediaType, server: name, body: Data(), isHead: true)
        #expect(kind(response.verdict(isNameless: isNameless) { _ in Int?.none }) == verdict)
        let page = ServerResponse(status: 404, contentType: "text/html", server: name, body: Data(), isHead: true)
        #expect(kind(page.verdict(isNameless: isNameless) { _ in Int?.none }) == "foreign")
    }
}
