import CarillonBasics
import Foundation
import Synchronization

/// Push tokens that wait to be sent, from the command line, or from a file that is read on demand.
///
/// Until ``open()``, each token after the first requires a call of ``proceed()``. A fault that affects every push, such as a
/// revoked key, is therefore reported once instead of for each token. ``stop()`` ends the sequence, even during a read.
final class TokenFeed: AsyncSequence, Sendable {
    typealias Element = TokenLine
    typealias Failure = CommandFault

    private struct State {
        var lines = TokenLines()
        /// Nil if tokens can be repeated.
        var sieve: TokenSieve?
        var ready: [TokenLine] = []
        var nextReady = 0
        var hasEnded = false
        var isStopped = false
        var permits = 1
        var isOpen = false
        var failure: CommandFault?
        var waiting: CheckedContinuation<Void, Never>?
        /// Whether the sequence waits for a permit; otherwise it waits for a read.
        var waitsForPermit = false

        init(once: Bool) { if once { sieve = TokenSieve() } }

        /// Returns the tokens of new lines, without repeated ones if these are skipped.
        mutating func sift(_ lines: [TokenLine]) -> [TokenLine] { sieve?.letThrough(lines) ?? lines }

        mutating func takeWaitingForPermit() -> CheckedContinuation<Void, Never>? {
            waitsForPermit ? takeWaiting() : nil
        }

        mutating func takeWaiting() -> CheckedContinuation<Void, Never>? {
            defer { waiting = nil }
            return waiting
        }
    }

    private enum Step {
        case give(TokenLine)
        case fail(CommandFault)
        case wait, read, end
    }

    /// The number of bytes to read; nil if it is unknown, or no file is read.
    let size: Int?
    /// The number of tokens on the command line; nil for a file.
    let count: Int?
    var isFile: Bool { count == nil }
    private let name: String
    private let handle: FileHandle?
    /// Reads block, so they must not run in a task.
    private let queue = DispatchQueue(label: "carillon.tokens")
    private let state: Mutex<State>

    /// - Parameter once: Whether repeated tokens are skipped.
    init(_ tokens: [String], once: Bool = false) {
        var state = State(once: once)
        state.ready = state.sift(tokens.map { TokenLine(deviceToken: $0) })
        state.hasEnded = true
        self.state = Mutex(state)
        (size, count, handle, name) = (nil, state.ready.count, nil, "")
    }

    init(file path: String, once: Bool = false) throws {
        state = Mutex(State(once: once))
        count = nil
        name = path == "-" ? "standard input" : path
        guard path != "-" else {
            (size, handle) = (nil, .standardInput)
            return
        }
        do {
            let values = try URL(filePath: path).resourceValues(forKeys: [.isDirectoryKey, .isRegularFileKey, .fileSizeKey])
            guard values.isDirectory != true else {
                throw CommandFault(ExitStatus.noInput, "\(path) is a directory, not a file of device tokens")
            }
            size = values.isRegularFile == true ? values.fileSize : nil
            handle = try FileHandle(forReadingFrom: URL(filePath: path))
        } catch let fault as CommandFault {
            throw fault
        } catch {
            throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(path, "the file ")) cannot be read")
        }
    }

    /// Permits one more token.
    func proceed() {
        state.withLock { state in
            state.permits += 1
            return state.takeWaitingForPermit()
        }?.resume()
    }

    /// Permits all tokens.
    func open() {
        state.withLock { state in
            state.isOpen = true
            return state.takeWaitingForPermit()
        }?.resume()
    }

    /// Ends the sequence. No further token is returned.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            return state.takeWaiting()
        }?.resume()
    }

    /// Whether all tokens were returned.
    var isExhausted: Bool { state.withLock { $0.hasEnded && $0.nextReady == $0.ready.count && $0.failure == nil } }

    /// The number of tokens that were skipped as repeated; nil if repetitions are not skipped.
    var repeated: Int? { state.withLock { $0.sieve?.repeated } }

    func makeAsyncIterator() -> Iterator { Iterator(feed: self) }

    struct Iterator: AsyncIteratorProtocol {
        let feed: TokenFeed

        mutating func next() async throws(CommandFault) -> TokenLine? { try await feed.next() }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(CommandFault) -> TokenLine? {
            try await feed.next()
        }
    }

    private func next() async throws(CommandFault) -> TokenLine? {
        while true {
            switch state.withLock({ Self.step(&$0) }) {
            case .give(let line): return line
            case .fail(let fault): throw fault
            case .end: return nil
            case .wait: await change(reading: false)
            case .read: await change(reading: true)
            }
        }
    }

    private static func step(_ state: inout State) -> Step {
        if state.isStopped { return .end }
        if state.nextReady < state.ready.count {
            guard state.isOpen || state.permits > 0 else { return .wait }
            state.permits -= 1
            defer { state.nextReady += 1 }
            return .give(state.ready[state.nextReady])
        }
        if let failure = state.failure { return .fail(failure) }
        return state.hasEnded ? .end : .read
    }

    /// Returns at the next change: a permit, new lines, or the end.
    private func change(reading: Bool) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.isStopped || (!reading && (state.isOpen || state.permits > 0)) { return true }
                state.waiting = continuation
                state.waitsForPermit = !reading
                return false
            }
            if isThere { return continuation.resume() }
            if reading { queue.async { self.read() } }
        }
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var count: Int
        repeat {
            count = Foundation.read(handle?.fileDescriptor ?? -1, &buffer, buffer.count)
        } while count < 0 && errno == EINTR
        let bytes = count > 0 ? buffer[..<count] : []
        state.withLock { state in
            state.ready = []
            state.nextReady = 0
            var lines = state.lines.take(bytes)
            if count < 0 { state.failure = CommandFault(ExitStatus.noInput, "\(name) cannot be read") }
            if count == 0 {
                state.hasEnded = true
                if let last = state.lines.end() { lines.append(last) }
            }
            state.ready = state.sift(lines)
            return state.takeWaiting()
        }?.resume()
    }
}
