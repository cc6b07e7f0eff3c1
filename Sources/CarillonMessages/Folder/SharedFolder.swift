import CarillonBasics
package import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A folder that an app shares with its notification service extension. Only the app writes the keys of its channels. Only
/// the extension writes a file for each message that it showed, and the app removes that file.
///
/// Each file is written completely under another name and then renamed. A reader therefore finds either the earlier or the
/// new file, and needs no lock. A file that cannot be read is treated as absent.
package struct SharedFolder: Sendable {
    private let keys: URL
    private let shown: URL
    private let own: URL

    /// The number of shown messages that are always remembered. When there are more than twice as many, the oldest are
    /// forgotten until this number is left.
    package static let shownLimit = 500

    package init(path: String) {
        let base = URL(fileURLWithPath: path, isDirectory: true)
        keys = base.appendingPathComponent("keys", isDirectory: true)
        shown = base.appendingPathComponent("shown", isDirectory: true)
        own = base.appendingPathComponent("device", isDirectory: true)
    }

    // MARK: Keys

    /// Replaces the keys of all channels, and removes the keys of all others.
    package func replaceKeys(_ all: [ChannelID: SubscriptionKeys]) throws {
        try make(keys)
        let files = FileManager.default
        let wanted = Set(all.keys.map { "\($0)" })
        for name in try files.contentsOfDirectory(atPath: keys.path) where !wanted.contains(name) {
            try? files.removeItem(at: keys.appendingPathComponent(name))
        }
        for (channel, keys) in all { try put(keys, of: channel) }
    }

    /// Sets the keys of a channel; nil removes them.
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

    /// Returns the keys of a channel. Returns nil if the channel has no keys, or if the file cannot be read now, for instance
    /// because the phone was not unlocked since its start.
    package func keys(of channel: ChannelID) -> SubscriptionKeys? {
        keys(in: keys.appendingPathComponent("\(channel)"))
    }

    /// Returns the keys that decrypt the private notifications of the device's item subscriptions. Returns nil in the same
    /// cases as ``keys(of:)``.
    package func ownKeys() -> SubscriptionKeys? { keys(in: keysFile) }

    /// Returns the keys of ``ownKeys()``, and generates them if no keys exist.
    /// - Throws: An error if the keys exist but cannot be read now, or if new keys cannot be written.
    package func loadOrCreateKeys() throws -> SubscriptionKeys {
        // Two concurrent first calls return the same keys.
        try Self.making.withLock { _ in try madeIfMissing() }
    }

    private static let making = Mutex(())

    private func madeIfMissing() throws -> SubscriptionKeys {
        if let keys = ownKeys() { return keys }
        guard !FileManager.default.fileExists(atPath: keysFile.path) else { throw CocoaError(.fileReadCorruptFile) }
        try make(own)
        let keys = SubscriptionKeys()
        try write(keys, to: keysFile)
        return keys
    }

    private var keysFile: URL { own.appendingPathComponent("subscriptions") }

    private func keys(in file: URL) -> SubscriptionKeys? {
        guard let data = try? Data(contentsOf: file), data.count < 1024 else { return nil }
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
        guard lines.count == 2, let privateKey = Base64URL.decode(lines[0]), let secret = Base64URL.decode(lines[1]) else {
            return nil
        }
        return SubscriptionKeys(privateKey: privateKey, authSecret: secret)
    }

    // MARK: Shown messages

    /// - Parameter hash: The hash of ``MessageHash``. Any other text is ignored.
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

    /// Whether the text has the form of a hash. Only a hash becomes the name of a file.
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
            // The files can be read after the first unlock since the phone's start, because pushes arrive while the phone is
            // locked.
            let options: Data.WritingOptions = [.atomic, .completeFileProtectionUntilFirstUserAuthentication]
        #else
            let options: Data.WritingOptions = [.atomic]
        #endif
        try Data(text.utf8).write(to: file, options: options)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    }
}
