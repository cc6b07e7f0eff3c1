import CarillonBasics
import Foundation
import Synchronization

/// Device tokens on their way to be sent: from the command line, or from a file that is read as tokens are asked for.
///
/// It gives one token, and the next only after ``proceed()``, until ``open()``: what is wrong with every push, a revoked
/// key for instance, is then heard once instead of for each token. ``stop()`` ends it, even while a read is waited for.
final class TokenFeed: AsyncSequence, Sendable {
    typealias Element = TokenLine
    typealias Failure = CommandFault

    private struct State {
        var lines = TokenLines()
        /// Nil when a token may come as often as it is given.
        var sieve: TokenSieve?
        var ready: [TokenLine] = []
        var nextReady = 0
        var hasEnded = false
        var isStopped = false
        var permits = 1
        var isOpen = false
        var failure: CommandFault?
        var waiting: CheckedContinuation<Void, Never>?
        /// Whether what is waited for is a permit; otherwise it is a read.
        var waitsForPermit = false

        init(once: Bool) { if once { sieve = TokenSieve() } }

        /// What is to be given of lines that were read.
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

    /// How many bytes there are to read; nil when nobody can know, or nothing is read.
    let size: Int?
    /// How many tokens the command line has; nil for a file.
    let count: Int?
    var isFile: Bool { count == nil }
    private let name: String
    private let handle: FileHandle?
    /// Reads block, which no task may.
    private let queue = DispatchQueue(label: "carillon.tokens")
    private let state: Mutex<State>

    /// - Parameter once: whether a token is given once, however often it comes.
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

    /// One more token may be given.
    func proceed() {
        state.withLock { state in
            state.permits += 1
            return state.takeWaitingForPermit()
        }?.resume()
    }

    /// All tokens may be given.
    func open() {
        state.withLock { state in
            state.isOpen = true
            return state.takeWaitingForPermit()
        }?.resume()
    }

    /// No further token is given.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            return state.takeWaiting()
        }?.resume()
    }

    /// Whether every token was given.
    var isExhausted: Bool { state.withLock { $0.hasEnded && $0.nextReady == $0.ready.count && $0.failure == nil } }

    /// How many tokens were kept back because they had been given; nil when none is.
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

    /// Returns when there is something new: a permit, lines, the end.
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
