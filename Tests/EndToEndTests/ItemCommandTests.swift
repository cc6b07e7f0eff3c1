import CarillonWire
import Foundation
import NIOHTTP1
import TestSupport
import Testing

/// `carillon items` and `carillon subscriptions`, used as a person would use them.
@Suite(.timeLimit(.minutes(5)))
struct ItemCommandTests {
    private struct Registered: Decodable {
        var id: String
        var credential: String
    }

    private struct Made: Decodable { var id: String }

    @Test func `items are opened, published and shown, and firings are explained`() async throws {
        let files = try TemporaryDirectory.make()
        let server = try await LiveServer.start()
        let (admin, sender, client) = try await server.whileStopped { directory in
            (
                try await LiveServer.key(.admin, in: directory), try await LiveServer.key(.sender, in: directory),
                try await LiveServer.key(.client, in: directory)
            )
        }
        let rules = files + "/rules.json"
        try Data(#"{"items":[{"pattern":"stock.*","open":true}]}"#.utf8).write(to: URL(fileURLWithPath: rules))
        func carillon(_ arguments: [String], key: String) async throws -> (status: Int32, lines: [String]) {
            try await run(arguments + ["--server", server.address, "--key", key])
        }
        #expect(try await carillon(["items", "rules", "set", LiveServer.app, rules], key: admin).status == 0)
        let shown = try await carillon(["items", "rules", "show", LiveServer.app], key: admin)
        #expect(shown.lines.first?.contains(#""pattern":"stock.*""#) == true)
        #expect(try await carillon(["items", "get", "stock.A B"], key: sender).status == 65)
        let published = try await carillon(
            ["items", "publish", "stock.A B", "price=10.50", "name=ACME", "open=true"], key: sender)
        #expect(published.lines == ["accepted  update 1 of stock.A B"])
        let item = try await carillon(["items", "get", "stock.A B"], key: sender)
        #expect(item.lines.first?.contains(#""fields":{"name":"ACME","open":true,"price":10.50}"#) == true)

        let device = try JSONDecoder().decode(
            Registered.self, from: Data(try await server.request(.POST, "/v1/devices", key: client).text.utf8))
        let body = """
            {"items":["stock.A B"],"fields":["price","name"],"format":{"title":"x"},"trigger":"price > 20.0 && name == 'ACME'"}
            """
        let made = try JSONDecoder().decode(
            Made.self,
            from: Data(
                try await server.request(.POST, "/v1/device/subscriptions", key: device.credential, body: body).text.utf8))
        let list = try await carillon(["subscriptions", "list", device.id], key: admin)
        #expect(list.lines.count == 1)
        #expect(list.lines.first?.contains("\(made.id)  subscribed") == true)
        let before = try await carillon(["subscriptions", "explain", device.id, made.id], key: admin)
        #expect(
            before.lines == [
                "stock.A B  does_not_hold  after 1 updates", "  no   price > 20.0  (it is 10.5)",
                #"  yes  name == "ACME"  (it is ACME)"#,
            ], "\(before.lines)")
        let again = try await carillon(["items", "publish", "stock.A B", "price=21"], key: sender)
        #expect(again.status == 0)
        let after = try await carillon(["subscriptions", "explain", device.id, made.id], key: admin)
        #expect(after.lines.first == "stock.A B  triggered  after 2 updates")
        let listed = try await carillon(["items", "list", "--prefix", "stock."], key: sender)
        #expect(listed.lines.first?.hasPrefix("stock.A B  after 2 updates") == true, "\(listed.lines)")
        #expect(listed.lines.first?.hasSuffix("1 subscriptions") == true)
        let closed = files + "/closed.json"
        try Data(#"{"items":[]}"#.utf8).write(to: URL(fileURLWithPath: closed))
        let counted = try await carillon(["items", "rules", "set", LiveServer.app, closed, "--validate"], key: admin)
        #expect(counted.lines == ["the rules would end 1 subscriptions"])
        #expect(try await carillon(["items", "publish", "stock.A B", "price"], key: sender).status == 64)
        #expect(try await carillon(["items", "publish", "stock.A B", "price=[1]"], key: sender).status == 65)
        #expect(try await carillon(["items", "publish", "stock.A B", "price=1"], key: client).status == 77)
        let deleted = try await carillon(["items", "delete", "stock.A B"], key: sender)
        #expect(deleted.lines == ["deleted stock.A B"])
        #expect(try await carillon(["items", "delete", "stock.A B"], key: sender).status == 65)
        #expect(try await carillon(["items", "list"], key: sender).lines.allSatisfy(\.isEmpty))
    }

    @Test func `lines from standard input are published, and refused ones are reported with their numbers`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { directory in try await LiveServer.key(.sender, in: directory) }
        let lines = [
            #"{"item":"a","fields":{"x":1}}"#, #"{"item":"a","fields":{"x":[]}}"#, #"{"item":"b","fields":{"x":2}}"#,
        ]
        let published = try await run(
            ["items", "publish", "--server", server.address, "--key", key], input: lines.joined(separator: "\n") + "\n")
        #expect(published.status == 65)
        let output = published.lines.joined(separator: "\n")
        #expect(output.contains("line 2  field_invalid"), "\(output)")
        #expect(output.contains("accepted 2  repeated 0  refused 1"), "\(output)")
    }
}
