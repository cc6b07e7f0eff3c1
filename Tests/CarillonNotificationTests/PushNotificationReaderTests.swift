import CarillonBasics
import CarillonMessages
import CarillonNotification
import CarillonWire
import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// The handling of a notification by an extension, with the keys that the app stored for it.
struct PushNotificationReaderTests {
    private let directory: String
    private let folder: SharedFolder
    private let keys = SubscriptionKeys()
    private let channel: ChannelID
    private let hash = MessageHash.text(of: "some message")

    init() throws {
        directory = try TemporaryDirectory.make()
        folder = SharedFolder(path: directory)
        channel = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
    }

    private var reader: PushNotificationReader { PushNotificationReader(sharedDirectory: directory) }

    private func fields(_ text: String, keys: SubscriptionKeys? = nil) throws -> [String: Any] {
        let endpoint = try #require(ChannelEndpoint("https://push.example.com/push/token"))
        let subscription = PushSubscription(keys ?? self.keys, endpoint: endpoint)
        let sealed = try subscription.encrypt(Array(text.utf8), with: .aes128gcm).body
        return [
            "kind": "alert", "message": hash, "channel": "\(channel)", "body": Base64URL.encode(sealed),
            "coding": "aes128gcm",
        ]
    }

    private func userInfo(_ fields: [String: Any]) -> [AnyHashable: Any] { ["aps": ["alert": "New"], "carillon": fields] }

    @Test func `a message is opened with the keys that the app left`() throws {
        try folder.put(keys, of: channel)
        let fields = try fields("The kettle boils ✓")
        let message = try #require(reader.message(in: userInfo(fields)))
        #expect(message.text == "The kettle boils ✓" && message.channelID == "\(channel)")
        let payload = try JSONSerialization.data(withJSONObject: ["aps": ["alert": "New"], "carillon": fields])
        #expect(reader.message(inPayload: payload) == message)
    }

    @Test func `missing, stale and damaged keys show the configured text`() throws {
        let info = userInfo(try fields("secret"))
        #expect(reader.message(in: info) == nil, "missing")
        try folder.put(SubscriptionKeys(), of: channel)
        #expect(reader.message(in: info) == nil, "of another opening")
        let file = directory + "/keys/\(channel)"
        for damage in ["", "x", "AAAA\nAAAA\n", String(repeating: "A", count: 2000)] {
            try Data(damage.utf8).write(to: URL(filePath: file))
            #expect(reader.message(in: info) == nil, "damaged")
        }
        try FileManager.default.removeItem(atPath: file)
        // As on a phone that was not unlocked yet: it is there, and cannot be read.
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
        #expect(reader.message(in: info) == nil, "locked")
        // A file is in the place of the directory.
        try Data().write(to: URL(filePath: directory + "/file"))
        let nowhere = PushNotificationReader(sharedDirectory: directory + "/file/shared")
        #expect(nowhere.message(in: info) == nil)
        #expect(!nowhere.noteShown(info))
    }

    @Test func `a notification that is not from Carillon is ignored`() throws {
        try folder.put(keys, of: channel)
        let good = try fields("secret")
        #expect(reader.message(in: userInfo(good)) != nil)
        #expect(reader.message(in: ["aps": ["alert": "New"]]) == nil)
        #expect(reader.message(in: ["carillon": "text"]) == nil)
        #expect(reader.message(inPayload: Data("no json".utf8)) == nil)
        for name in ["message", "channel", "body", "coding"] {
            var fields = good
            fields[name] = nil
            #expect(reader.message(in: userInfo(fields)) == nil, "\(name)")
            fields[name] = 7
            #expect(reader.message(in: userInfo(fields)) == nil, "\(name)")
            fields[name] = "../../etc"
            #expect(reader.message(in: userInfo(fields)) == nil || name == "message", "\(name)")
        }
        var identity = good
        identity["coding"] = "identity"
        #expect(reader.message(in: userInfo(identity)) == nil, "a message in the clear never travels")
    }

    @Test func `a shown message is known to the app until the app handled it`() throws {
        try folder.put(keys, of: channel)
        let message = try #require(reader.message(in: userInfo(try fields("hello"))))
        #expect(!folder.wasShown(hash))
        #expect(reader.noteShown(message))
        #expect(folder.wasShown(hash))
        folder.forgetShown(hash)
        #expect(!folder.wasShown(hash))
        #expect(reader.noteShown(userInfo(["message": hash])))
        #expect(folder.wasShown(hash))
        #expect(!reader.noteShown(userInfo(["message": "../escape"])))
        #expect(!FileManager.default.fileExists(atPath: directory + "/escape"))
    }

    @Test func `the number of shown messages is bounded, and the newest are stored`() throws {
        let hashes = (0...2 * SharedFolder.shownLimit).map { MessageHash.text(of: "\($0)") }
        for (index, hash) in hashes.enumerated() {
            try folder.noteShown(hash)
            let path = directory + "/shown/" + hash
            let age = Date(timeIntervalSince1970: 1_700_000_000 + Double(index))
            if FileManager.default.fileExists(atPath: path) {
                try FileManager.default.setAttributes([.modificationDate: age], ofItemAtPath: path)
            }
        }
        let kept = try FileManager.default.contentsOfDirectory(atPath: directory + "/shown").count
        #expect(kept <= SharedFolder.shownLimit + 1 && kept >= SharedFolder.shownLimit)
        #expect(folder.wasShown(hashes[hashes.count - 2]))
        #expect(!folder.wasShown(hashes[0]))
    }

    @Test func `the keys of the folder are those that there are, for their owner alone`() throws {
        let other = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455557777"))
        try folder.put(keys, of: channel)
        try folder.replaceKeys([other: keys])
        #expect(folder.keys(of: channel) == nil && folder.keys(of: other) == keys)
        let file = directory + "/keys/\(other)"
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        try folder.put(nil, of: other)
        #expect(folder.keys(of: other) == nil)
        try folder.put(nil, of: other)
    }

    private func fired(_ title: String, for keys: SubscriptionKeys) throws -> [String: Any] {
        let fired = FiredNotification(
            subscription: try #require(SubscriptionID(String(repeating: "ab", count: 16))), key: "k", item: "stock.ACME",
            at: 1_700_000_000_000,
            notification: .object([
                .init(name: "title", value: .string(title)),
                .init(name: "sound", value: .object([.init(name: "name", value: .string("bell"))])),
            ]))
        let sealed = try PrivateKeys(publicKey: keys.publicKey, authSecret: keys.authSecret)
            .encrypt(fired.json.bytes, with: .aes128gcm)
        return ["kind": "fired", "message": hash, "body": Base64URL.encode(sealed.body), "coding": "aes128gcm"]
    }

    @Test func `the text of a private subscription is decrypted with the device's keys`() throws {
        let own = try folder.loadOrCreateKeys()
        let fields = try fired("secret ✓", for: own)
        let shown = try #require(reader.privateNotification(in: userInfo(fields)))
        #expect(shown.title == "secret ✓" && shown.body == nil && shown.sound == "bell" && shown.item == "stock.ACME")
        #expect(shown.key == "k" && shown.updatedAt == Date(timeIntervalSince1970: 1_700_000_000))
        #expect(reader.noteShown(shown) && folder.wasShown(hash))
        let payload = try JSONSerialization.data(withJSONObject: ["aps": ["alert": "New"], "carillon": fields])
        #expect(reader.privateNotification(inPayload: payload)?.title == "secret ✓")
        #expect(reader.message(in: userInfo(fields)) == nil, "it is no channel's message")
    }

    @Test func `content that is foreign, damaged or of another kind shows the app's text`() throws {
        #expect(reader.privateNotification(in: userInfo(try fired("x", for: keys))) == nil, "there are no keys")
        let own = try folder.loadOrCreateKeys()
        #expect(reader.privateNotification(in: userInfo(try fired("x", for: keys))) == nil, "of others")
        let good = try fired("x", for: own)
        for (name, value) in [("kind", "alert"), ("coding", "aesgcm"), ("body", "AAAA"), ("body", "?")] {
            #expect(reader.privateNotification(in: userInfo(good.merging([name: value]) { $1 })) == nil, "\(name)")
        }
        #expect(reader.privateNotification(in: userInfo(try fields("x", keys: own))) == nil)
    }

    @Test func `two concurrent beginnings have one pair of keys`() async throws {
        let folder = folder
        let all = try await withThrowingTaskGroup(of: SubscriptionKeys.self) { group in
            for _ in 0..<16 { group.addTask { try folder.loadOrCreateKeys() } }
            return try await group.reduce(into: Set<SubscriptionKeys>()) { $0.insert($1) }
        }
        #expect(all.count == 1)
    }

    @Test func `the device's keys are made once, outlive those of channels, and are not replaced while they cannot be read`()
        throws
    {
        let own = try folder.loadOrCreateKeys()
        try folder.replaceKeys([channel: keys])
        try folder.replaceKeys([:])
        #expect(try SharedFolder(path: directory).loadOrCreateKeys() == own)
        let file = directory + "/device/subscriptions"
        let permissions = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(permissions == 0o600)
        try Data("x".utf8).write(to: URL(filePath: file))
        #expect(throws: (any Error).self) { try folder.loadOrCreateKeys() }
    }
}
