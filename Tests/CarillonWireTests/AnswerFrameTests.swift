import CarillonBasics
import CarillonWire
import Testing

struct AnswerFrameTests {
    @Test(
        arguments: [
            ServerFrame.Answer(id: 1, status: 200, body: Array(#"{"a":1}"#.utf8)), .init(id: 1, status: 204, body: []),
            .init(id: 1, status: 200, body: [0x89, 0xFF, 0x22], contentType: "image/png"),
        ])
    func `an answer is read as it was written`(_ answer: ServerFrame.Answer) throws {
        #expect(try ServerFrame.parse(ServerFrame.answer(answer).text) == .answer(answer))
    }

    @Test(
        arguments: [
            #""encoding":"base64url","contentType":"image/png""#, #""encoding":"base64url","body":"iQ""#,
            #""encoding":"base64url","contentType":"image/png","body":"*""#, #""encoding":"gzip","body":"iQ""#,
        ])
    func `a body that cannot be read is a fault`(_ members: String) {
        let text = #"{"messageType":"answer","id":1,"status":200,\#(members)}"#
        #expect(throws: ServerFrame.Fault.self) { try ServerFrame.parse(text.utf8) }
    }
}
