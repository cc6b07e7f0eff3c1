import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The directories of received files: `Inbox/<sender>/<time>/<path>`, one directory for each message. Incomplete files are in a
/// separate directory, which gets its final name when all files are complete.
struct MessageFiles: Sendable {
    let root: String
    private let logger: Logger
    private let delete: @Sendable (String) throws -> Void

    /// - Parameter delete: Removes a file or a directory.
    init(
        root: String, logger: Logger = .forWarnings("carillon.services"),
        deleting delete: @escaping @Sendable (String) throws -> Void = { try FileManager.default.removeItem(atPath: $0) }
    ) {
        self.root = root
        self.logger = logger
        self.delete = delete
    }

    private func gathering(_ number: Int64) -> String { "\(root)/.gathering/\(number)" }

    /// The path of a long payload that is being received.
    func draftOfPayload(_ name: String) -> String { "\(root)/.payloads/\(name)" }

    /// Returns a path for a new directory, which no message has.
    func newDirectory(of sender: String, at milliseconds: Int64) -> String {
        var time = milliseconds
        while FileManager.default.fileExists(atPath: "\(root)/\(sender)/\(time)") { time += 1 }
        return "\(root)/\(sender)/\(time)"
    }

    func path(of file: RelativePath, in directory: String) -> String { "\(directory)/\(file.text)" }

    /// Returns the path of an incomplete file of a message, and makes its directories.
    func draft(of file: RelativePath, for number: Int64) async throws(PushError) -> String {
        let path = "\(gathering(number))/\(file.text)"
        try await DiskFile.work { () throws(PushError) in try DiskFile.makeDirectory(DiskFile.directory(of: path)) }
        return path
    }

    /// Whether an incomplete message has a file. A file that an earlier version stored under its name in another Unicode form
    /// gets the name in NFC.
    func isGathered(_ file: RelativePath, for number: Int64) -> Bool { Self.exists(file, in: gathering(number)) }

    /// Renames the files of a message that an earlier version stored to their names in NFC.
    func normalize(_ files: [RelativePath], in directory: String) {
        for file in files { _ = Self.exists(file, in: directory) }
    }

    private static func exists(_ file: RelativePath, in directory: String) -> Bool {
        let (files, path) = (FileManager.default, "\(directory)/\(file.text)")
        if files.fileExists(atPath: path) { return true }
        guard let former = former(file.components[...], in: directory) else { return false }
        do {
            try files.createDirectory(atPath: DiskFile.directory(of: path), withIntermediateDirectories: true)
            try files.moveItem(atPath: former, toPath: path)
        } catch {
            // The file is fetched again, under its name in NFC.
            return false
        }
        let place = DiskFile.directory(of: former)
        if let rest = try? files.contentsOfDirectory(atPath: place), rest.isEmpty { try? files.removeItem(atPath: place) }
        return true
    }

    /// Returns the path of a file whose name differs only in its Unicode form.
    private static func former(_ components: ArraySlice<String>, in directory: String) -> String? {
        guard let first = components.first else { return directory }
        // Swift compares canonically equivalent texts as equal.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        for name in names where name == first {
            if let path = former(components.dropFirst(), in: "\(directory)/\(name)") { return path }
        }
        return nil
    }

    /// Moves the directory of a complete message to its final name. Does nothing if an earlier run has moved it.
    func finish(_ number: Int64, as directory: String) async throws(PushError) {
        let gathering = gathering(number)
        try await DiskFile.work { () throws(PushError) in
            let files = FileManager.default
            guard files.fileExists(atPath: gathering) else { return }
            try DiskFile.makeDirectory(DiskFile.directory(of: directory))
            do {
                try files.moveItem(atPath: gathering, toPath: directory)
            } catch {
                throw PushError(.storageUnavailable, "The directory \(directory) cannot be made.", cause: error)
            }
        }
    }

    /// Whether a path belongs to the incomplete files of one of the messages.
    func isGathered(_ path: String, for numbers: Set<Int64>) -> Bool {
        let base = "\(root)/.gathering/"
        guard path.hasPrefix(base), let number = path.dropFirst(base.count).split(separator: "/").first else { return false }
        return Int64(number).map(numbers.contains) ?? false
    }

    func isFinished(_ directory: String) -> Bool { FileManager.default.fileExists(atPath: directory) }

    /// Returns a path below the directory for received files relative to it, and any other path unchanged.
    func relative(_ path: String) -> String { path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : path }

    func absolute(_ relative: String) -> String { relative.hasPrefix("/") ? relative : "\(root)/\(relative)" }

    /// Removes the directories of messages.
    ///
    /// - Parameter files: Files of these messages, relative to the directory for received files.
    func removeMessages(of files: [String]) {
        // Compares bytes, because an accent at the beginning of a name forms one character with the slash before it.
        let slash = UInt8(ascii: "/")
        let messages = files.filter { $0.utf8.first != slash }.map { file in
            file.utf8.split(separator: slash).prefix(2).map { String(Substring($0)) }
        }
        for message in Set(messages) where message.count == 2 { remove("\(root)/\(message.joined(separator: "/"))") }
    }

    /// Removes all received files, after a change of the device's user.
    func removeAll() {
        do {
            try delete(root)
        } catch {
            if Self.isMissing(error) { return }
            do {
                let names = try FileManager.default.contentsOfDirectory(atPath: root)
                for name in names where name != Self.removedName { remove("\(root)/\(name)") }
            } catch {
                logger.error("cannot remove received files", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Removes the incomplete files of a request.
    func discard(_ number: Int64) { remove(gathering(number)) }

    /// Removes incomplete files that belong to no stored request, and the files that could not be removed before.
    func sweep(except numbers: Set<Int64>) {
        remove(removed)
        remove("\(root)/.payloads")
        let gathered = (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/.gathering")) ?? []
        for name in gathered where Int64(name).map({ !numbers.contains($0) }) ?? true {
            remove("\(root)/.gathering/\(name)")
        }
    }

    // MARK: Files that cannot be removed

    private static let removedName = ".removed"

    /// The directory of files that could not be removed. The next start removes it.
    private var removed: String { "\(root)/\(Self.removedName)" }

    /// Removes a file or a directory, if it exists. A file that cannot be removed is moved away, and is removed at the next
    /// start.
    func remove(_ path: String) {
        do {
            try delete(path)
        } catch {
            if Self.isMissing(error) { return }
            // The text of the error contains names of the app's files.
            let code = (error as? CocoaError).map { "\($0.code.rawValue)" } ?? "\(type(of: error))"
            let metadata: Logger.Metadata = ["path": "\(relative(path))", "code": "\(code)"]
            guard path == removed || isMovedAway(path) else {
                return logger.error("cannot remove file", metadata: metadata)
            }
            logger.warning("cannot remove file; retrying at the next start", metadata: metadata)
        }
    }

    private func isMovedAway(_ path: String) -> Bool {
        let files = FileManager.default
        do {
            try files.createDirectory(atPath: removed, withIntermediateDirectories: true)
            var number = 0
            while files.fileExists(atPath: "\(removed)/\(number)") { number += 1 }
            try files.moveItem(atPath: path, toPath: "\(removed)/\(number)")
            return true
        } catch {
            return false
        }
    }

    private static func isMissing(_ error: any Error) -> Bool { (error as? CocoaError)?.code == .fileNoSuchFile }
}
