import CarillonClient
import CarillonWire
import Foundation
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

    @Test func `a phone that is restored on other hardware goes on as the device, and the old one is another`() async throws
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
        // What a backup takes along, once the file is closed.
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
        // The old one is told that it is nobody, and becomes another when a channel is wanted.
        let oldChannel = try old.channel("orders")
        try await eventually { oldChannel.state == .error }
        #expect(oldChannel.lastErrorCode == 201 && old.device.status == .unknown)
        let second = try await oldChannel.ensureOpen()
        #expect(second.endpoint != endpoint)
        try await eventually { old.device.isRegistered }
        #expect(old.device.deviceID != id)
        // What is sent to the device's channel comes to the new one.
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

    @Test func `a server whose data are restored from before a device was there makes it register anew`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { directory in
            let key = try await LiveServer.key(.client, in: directory)
            try FileManager.default.copyItem(atPath: directory, toPath: directory + "-backup")
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
            for name in try FileManager.default.contentsOfDirectory(atPath: directory)
            where name.hasPrefix("carillon.sqlite") {
                try FileManager.default.removeItem(atPath: directory + "/" + name)
            }
            for name in try FileManager.default.contentsOfDirectory(atPath: directory + "-backup")
            where name.hasPrefix("carillon.sqlite") {
                try FileManager.default.copyItem(
                    atPath: directory + "-backup/" + name, toPath: directory + "/" + name)
            }
            try FileManager.default.removeItem(atPath: directory + "-backup")
        }
        try await eventually { channel.state == .error }
        _ = try await channel.ensureOpen()
        try await eventually { phone.device.isRegistered }
        #expect(phone.device.deviceID != before)
        await phone.stop()
    }
}
