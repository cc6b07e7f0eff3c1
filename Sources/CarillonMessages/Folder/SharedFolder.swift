import CarillonBasics
package import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A folder that an app shares with its notification service extension: the keys of its channels, which the app alone writes, and
/// a file for each message that was shown, which the extension alone writes and the app removes.
///
/// Each file is written whole under another name and then put in its place, so that neither side needs a lock: whoever reads finds
/// the file as it was or as it is. What cannot be read is as what is not there.
package struct SharedFolder: Sendable {
    private let keys: URL
    private let shown: URL
    private let own: URL

    /// How many messages that were shown are remembered at least; beyond as many again the oldest are forgotten.
    package static let shownLimit = 500

    package init(path: String) {
        let base = URL(fileURLWithPath: path, isDirectory: true)
        keys = base.appendingPathComponent("keys", isDirectory: true)
        shown = base.appendingPathComponent("shown", isDirectory: true)
        own = base.appendingPathComponent("device", isDirectory: true)
    }

    // MARK: Keys

    /// Makes these the keys of all channels that there are.
    package func replaceKeys(_ all: [ChannelID: SubscriptionKeys]) throws {
        try make(keys)
        let files = FileManager.default
        let wanted = Set(all.keys.map { "\($0)" })
        for name in try files.contentsOfDirectory(atPath: keys.path) where !wanted.contains(name) {
            try? files.removeItem(at: keys.appendingPathComponent(name))
        }
        for (channel, keys) in all { try put(keys, of: channel) }
    }

    /// Sets the keys of a channel; nil takes them away.
    package func put(_ keys: SubscriptionKeys?, of channel: ChannelID) throws {
        let file = self.keys.appendingPathComponent("\(channel)")
        guard let keys else {
            if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
            return
        }
        try make(self.keys)
        try write(keys, to: file)
    }

    private func write(_ keys: SubscriptionKeys, to file: URL) throws {
        let text = Base64URL.encode(keys.privateKey) + "\n" + Base64URL.encode(keys.authSecret) + "\n"
        try write(text, to: file)
    }

    /// Nil when there are none, or they cannot be read now, as on a phone that was not unlocked since its start.
    package func keys(of channel: ChannelID) -> SubscriptionKeys? {
        keys(in: keys.appendingPathComponent("\(channel)"))
    }

    /// Those of what the device's subscriptions on items show; nil as of a channel.
    package func ownKeys() -> SubscriptionKeys? { keys(in: ownFile) }

    /// The same, and new ones where there are none.
    /// - Throws: Where they are there and cannot be read now, or cannot be written.
    package func ownKeysMadeIfMissing() throws -> SubscriptionKeys {
        // Two that begin at once have one pair.
        try Self.making.withLock { _ in try madeIfMissing() }
    }

    private static let making = Mutex(())

    private func madeIfMissing() throws -> SubscriptionKeys {
        if let keys = ownKeys() { return keys }
        guard !FileManager.default.fileExists(atPath: ownFile.path) else { throw CocoaError(.fileReadCorruptFile) }
        try make(own)
        let keys = SubscriptionKeys()
        try write(keys, to: ownFile)
        return keys
    }

    private var ownFile: URL { own.appendingPathComponent("subscriptions") }

    private func keys(in file: URL) -> SubscriptionKeys? {
        guard let data = try? Data(contentsOf: file), data.count < 1024 else { return nil }
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
        guard lines.count == 2, let privateKey = Base64URL.decode(lines[0]), let secret = Base64URL.decode(lines[1]) else {
            return nil
        }
        return SubscriptionKeys(privateKey: privateKey, authSecret: secret)
    }

    // MARK: What was shown

    /// - Parameter hash: See ``MessageHash``.
    package func noteShown(_ hash: String) throws {
        guard Self.isHash(hash) else { return }
        try make(shown)
        try write("", to: shown.appendingPathComponent(hash))
        forgetOldest()
    }

    package func wasShown(_ hash: String) -> Bool {
        Self.isHash(hash) && FileManager.default.fileExists(atPath: shown.appendingPathComponent(hash).path)
    }

    package func forgetShown(_ hash: String) {
        guard Self.isHash(hash) else { return }
        try? FileManager.default.removeItem(at: shown.appendingPathComponent(hash))
    }

    /// Nothing else becomes the name of a file.
    private static func isHash(_ text: String) -> Bool {
        text.utf8.count == 22 && Base64URL.decode(text)?.count == 16
    }

    private func forgetOldest() {
        let files = FileManager.default
        guard let names = try? files.contentsOfDirectory(atPath: shown.path), names.count > 2 * Self.shownLimit else {
            return
        }
        let aged = names.map { name -> (name: String, age: Date) in
            let path = shown.appendingPathComponent(name).path
            let attributes = try? files.attributesOfItem(atPath: path)
            return (name, attributes?[.modificationDate] as? Date ?? .distantPast)
        }
        for (name, _) in aged.sorted(by: { $0.age < $1.age }).dropLast(Self.shownLimit) {
            try? files.removeItem(at: shown.appendingPathComponent(name))
        }
    }

    // MARK: Files

    private func make(_ directory: URL) throws {
        guard !FileManager.default.fileExists(atPath: directory.path) else { return }
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    private func write(_ text: String, to file: URL) throws {
        #if canImport(Darwin)
            // Readable once the phone was unlocked after its start: pushes come while it is locked.
            let options: Data.WritingOptions = [.atomic, .completeFileProtectionUntilFirstUserAuthentication]
        #else
            let options: Data.WritingOptions = [.atomic]
        #endif
        try Data(text.utf8).write(to: file, options: options)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }
}
