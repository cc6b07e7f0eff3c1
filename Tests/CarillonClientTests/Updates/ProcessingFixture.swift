import CarillonBasics
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The durable inbox of one device, and its processing until a kill.
final class ProcessingFixture: Sendable {
    static let owner = UpdateOwner(device: "d", user: "ada", profile: "")

    let directory = TemporaryDirectory()
    let content: ContentFixture
    let presenter = PresenterFixture()
    /// In milliseconds since 1970.
    let clock = Mutex<Int64>(1_700_000_000_000)
    /// How long the device runs, and since which start.
    let uptime = Mutex(DeviceClock.Uptime(milliseconds: 5_000_000, boot: "first"))
    private let store: ClientStore
    var inbox: UpdateInbox {
        UpdateInbox(
            store: store,
            clock: DeviceClock { [self] in
                clock.withLock { $0 }
            } uptime: { [self] in
                uptime.withLock { $0 }
            })
    }

    init(_ content: ContentFixture = ContentFixture()) async throws {
        self.content = content
        store = try ClientStore(directory: directory.path, patience: 60)
        try await inbox.setOwner(Self.owner)
    }

    /// The server's answer to a poll.
    static func frame(
        _ id: String, _ kind: String, _ payload: String = "{}", attempt: Int = 1, entry: Int = 1,
        orderKey: String? = nil
    ) -> UpdateFrame {
        // A withdrawal contains nothing else.
        if attempt == 0 {
            return UpdateFrame(version: "v-\(id)-0", attempt: 0, entry: entry, body: Array(#"{"id":"\#(id)"}"#.utf8))
        }
        let order = orderKey.map { #","orderKey":"\#($0)""# } ?? ""
        let body =
            #"{"id":"\#(id)","kind":"\#(kind)","payload":\#(payload),"publishedAt":"2026-01-31T12:00:00.000Z","ttl":86400\#(order)}"#
        return UpdateFrame(version: "v-\(id)-\(attempt)", attempt: attempt, entry: entry, body: Array(body.utf8))
    }

    @discardableResult
    func receive(_ frames: UpdateFrame...) async throws -> Arrival {
        let asked = try await inbox.report(results: 0).position
        return try await inbox.received(
            PollAnswer(updates: frames, position: "p"), to: asked, by: Self.owner, reported: [], parameters: nil)
    }

    func worker(
        failsConflicts: Bool = false, custom: [String: PushUpdates.CustomHandler] = [:]
    ) -> UpdateWorker {
        UpdateWorker(
            .init(content: content, presenter: presenter, custom: custom), inbox: inbox,
            settings: .init(failsConflicts: failsConflicts), logger: Logger(label: "test"),
            now: { [self] in clock.withLock { $0 } }
        ) {}
    }

    /// Processes until nothing is left to do, or until it is killed.
    func run(_ worker: UpdateWorker, until isOver: @escaping @Sendable () async throws -> Bool) async throws {
        let task = Task {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await withDiscardingTaskGroup { jobs in
                        for await job in worker.jobs { jobs.addTask { await job() } }
                    }
                }
                do {
                    while try await !isOver() {
                        try Task.checkCancellation()
                        try await worker.processAll()
                        try await Task.sleep(for: .milliseconds(3))
                    }
                } catch {
                    // Killed.
                }
                group.cancelAll()
            }
        }
        content.state.withLock { $0.die = { task.cancel() } }
        await task.value
    }

    /// Processes everything that can be processed without anybody.
    func process(failsConflicts: Bool = false) async throws {
        let inbox = inbox
        try await run(worker(failsConflicts: failsConflicts)) { try await inbox.isAllProcessed() }
    }

    /// The report for the server, without the texts for people.
    func results() async throws -> [String] {
        try await inbox.report(results: 1000).results.map { result in
            let json = result.json
            guard case .string(let update)? = json["update"], case .string(let name)? = json["result"] else { return "?" }
            var text = "\(update) \(name)"
            if case .string(let until)? = json["until"] { text += " \(until)" }
            if case .string(let reason)? = json["reason"] { text += " (\(reason))" }
            return text
        }
    }
}
