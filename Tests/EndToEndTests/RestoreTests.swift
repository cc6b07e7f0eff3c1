import CarillonBasics
import CarillonClient
import CarillonWire
import ClientContent
import Foundation
import NIOHTTP1
import TestStores
import TestSupport
import Testing

/// Backups that are restored, on the client's side and on the server's.
@Suite(.timeLimit(.minutes(5)))
struct RestoreTests {
    private func client(_ server: LiveServer, _ key: String, _ state: String) throws -> PushClient {
        try PushClient(
            configuration: .init(
                server: server.address, app: LiveServer.app, clientKey: key,
                storageDirectory: server.directory + "/" + state,
                backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
    }

    @Test func `a phone that is restored on other hardware continues as the device, and the old one is another`()
        async throws
    {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let id: String
        let endpoint: String
        do {
            let old = try client(server, key, "old")
            try old.start()
            let channel = try old.channel("orders")
            endpoint = try await channel.ensureOpen().endpoint
            try await old.device.setToken("aa01")
            try await eventually { old.device.isRegistered }
            id = try #require(old.device.deviceID)
            await old.stop()
        }
        // The files of a backup, after the database is closed.
        let files = FileManager.default
        let log = server.directory + "/old/carillon-client.sqlite-wal"
        try await eventually { !FileManager.default.fileExists(atPath: log) }
        try files.copyItem(atPath: server.directory + "/old", toPath: server.directory + "/new")
        #expect(try files.contentsOfDirectory(atPath: server.directory + "/new").contains("carillon-client.install"))
        try files.removeItem(atPath: server.directory + "/new/carillon-client.install")

        let old = try client(server, key, "old")
        try old.start()
        try await eventually { old.availability.service }
        let new = try client(server, key, "new")
        try new.start()
        try await eventually { new.availability.service && new.device.deviceID == id }
        // The old one receives that it is unknown, and becomes another when a channel is needed.
        let oldChannel = try old.channel("orders")
        try await eventually { oldChannel.state == .error }
        #expect(oldChannel.lastErrorCode == 201 && old.device.status == .unknown)
        let second = try await oldChannel.ensureOpen()
        #expect(second.endpoint != endpoint)
        try await eventually { old.device.isRegistered }
        #expect(old.device.deviceID != id)
        // Messages to the device's channel reach the new one.
        _ = try await server.send("hello", to: endpoint)
        for try await event in try new.channel("orders").events {
            if case .message(let message) = event {
                #expect(message.text == "hello")
                break
            }
        }
        // And once it is marked, it is not renewed again.
        await new.stop()
        try new.start()
        try await eventually { new.availability.service }
        #expect(new.device.deviceID == id)
        await new.stop()
        await old.stop()
    }

    @Test func `a server that was restored to a state before a device existed makes it register anew`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { directory in
            let key = try await LiveServer.key(.client, in: directory)
            try await stores.replaceStore(in: directory + "-backup", withStoreOf: directory)
            return key
        }
        let phone = try client(server, key, "-phone")
        try phone.start()
        let channel = try phone.channel("orders")
        _ = try await channel.ensureOpen()
        let id = phone.device.deviceID
        try await phone.device.setToken("aa01")
        try await eventually { phone.device.isRegistered }
        #expect(id == nil)
        let before = try #require(phone.device.deviceID)
        try await server.whileStopped { directory in
            try await stores.replaceStore(in: directory, withStoreOf: directory + "-backup")
            try FileManager.default.removeItem(atPath: directory + "-backup")
        }
        try await eventually { channel.state == .error }
        _ = try await channel.ensureOpen()
        try await eventually { phone.device.isRegistered }
        #expect(phone.device.deviceID != before)
        await phone.stop()
    }

    private final class Source: ContentSource {
        func objects(_ change: PushUpdate.Content) async throws -> [String: String] { [:] }
        func definitions() async throws -> String { "" }
        func commit(_ edits: [String: String]) async -> CommitOutcome { .committed }
        func file(of attachment: PushUpdate.Attachment) async throws -> Data { Data() }
    }

    private final class Presenter: UpdatePresenter {
        func received(_ counts: [String: Int]) async {}
        func failed(_ failure: UpdateFailure) async {}
        func conflict(_ update: PushUpdate) async {}
        func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent { .declined }
        func notify(_ popup: PushUpdate.Popup) async {}
        func show(_ dialog: PopupDialog) async {}
        func dismiss(_ dialog: PopupDialog.ID) async {}
        func open(_ attachment: PushUpdate.Attachment) async {}
    }

    /// By the commands, or by copying the files of a stopped server: then nothing in them shows that they were restored.
    @Test(arguments: [true, false])
    func `a report that a restored server lost is sent again`(_ isByCommand: Bool) async throws {
        let server = try await LiveServer.start()
        let (key, admin, sender) = try await server.whileStopped { directory in
            let client = try await LiveServer.key(.client, in: directory)
            let admin = try await LiveServer.key(.admin, in: directory)
            return (client, admin, try await LiveServer.key(.sender, in: directory))
        }
        let access = ["--server", server.address, "--key", admin]
        #expect(try await run(["apps", "parameters", "set", LiveServer.app, "region=string"] + access).status == 0)
        let rules = server.directory + "/rules.json"
        try Data(#"{"items":[{"pattern":"stock.*","open":true}]}"#.utf8).write(to: URL(filePath: rules))
        #expect(try await run(["items", "rules", "set", LiveServer.app, rules] + access).status == 0)
        let phone = try client(server, key, "phone")
        try phone.start()
        _ = try await phone.channel("orders").ensureOpen()
        let id = try #require(phone.deviceID)
        let backup = server.directory + "-backup"
        if isByCommand {
            #expect(try await run(["backup", backup, "--data", server.directory]).status == 0)
        } else {
            try await server.whileStopped { try await stores.replaceStore(in: backup, withStoreOf: $0) }
        }
        defer { try? FileManager.default.removeItem(atPath: backup) }
        // The data that the backup does not have.
        try await phone.device.setToken("aa01")
        try await eventually { phone.device.isRegistered }
        let alert = NotificationSubscription(
            items: ["stock.ACME"], fields: ["price"], format: NotificationFormat(title: "t"), trigger: "price > 1.0",
            key: nil)
        try phone.device.subscriptions.subscribe(alert)
        try await eventually { alert.status == .subscribed }
        phone.updates.settings.needsUser = false
        let content = try SQLiteContent(path: server.directory + "/content.sqlite", source: Source())
        phone.updates.process(content: content, presenter: Presenter(), parameters: { ["region": .text("north")] })
        try await Self.isProcessed(server, sender)
        try await server.whileStopped { directory in
            if isByCommand {
                try await stores.removeStore(in: directory)
                #expect(try await run(["restore", backup, "--data", directory]).status == 0)
            } else {
                try await stores.replaceStore(in: directory, withStoreOf: backup)
            }
        }
        try await Self.awaits {
            try await Self.ask(server, "/v1/devices/\(id)", admin)["push"]?["platform"] == .string("apple")
        }
        try await Self.awaits {
            let list = try await Self.ask(server, "/v1/devices/\(id)/subscriptions", admin)
            if case .array(let found)? = list["subscriptions"] { return found.count == 1 }
            return false
        }
        try await eventually { alert.status == .subscribed }
        try await Self.isProcessed(server, sender)
        await phone.stop()
    }

    /// Waits as `eventually` does, for an answer of a server that this test alone uses.
    private static func awaits(_ condition: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(50)
        while try await !condition() {
            guard ContinuousClock.now < deadline else { throw NeverHappened() }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private static func ask(
        _ server: LiveServer, _ path: String, _ key: String, _ body: String? = nil
    ) async throws -> JSONValue {
        let answer = try await server.request(
            body == nil ? .GET : .POST, path, key: key, headers: ["content-type": "application/json"], body: body)
        return JSONValue(parsing: Array(answer.text.utf8)) ?? .null
    }

    /// Publishes an update for devices in the north, and waits until one has processed it.
    private static func isProcessed(_ server: LiveServer, _ sender: String) async throws {
        let update = try await ask(
            server, "/v1/updates", sender,
            #"{"kind":"content","payload":{"action":"refresh","object":"o"},"audience":"region == 'north'"}"#)
        guard case .string(let name)? = update["id"] else { throw NeverHappened() }
        try await awaits {
            try await ask(server, "/v1/updates/\(name)", sender)["devices"]?["done"] == .integer(1)
        }
    }

    @Test func `services that were offered to a server that was restored since are offered again`() async throws {
        let scenario = try await ServiceScenario()
        let (provider, reader) = (try await scenario.client(), try await scenario.client(ServiceScenario.files))
        let backup = scenario.server.directory + "-backup"
        try await scenario.server.whileStopped { try await stores.replaceStore(in: backup, withStoreOf: $0) }
        defer { try? FileManager.default.removeItem(atPath: backup) }
        try await provider.serviceProvider.offer(name: "Mail", version: "1", [ServiceScenario.transfer])
        try await scenario.found(LiveServer.app, by: reader)
        try await scenario.server.whileStopped { try await stores.replaceStore(in: $0, withStoreOf: backup) }
        try await scenario.found(LiveServer.app, by: reader)
        await provider.stop()
        await reader.stop()
    }
}
