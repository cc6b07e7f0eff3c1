import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// A device that is killed at any action of any update ends as if it had not been.
@Suite(.timeLimit(.minutes(5)))
struct KilledProcessingTests {
    private typealias Fixture = ProcessingFixture

    struct Cell: Sendable, CustomTestStringConvertible {
        var kind: String
        var payload: String
        var mode: SyncMode
        var edits: Int
        var commit: CommitOutcome
        var consent: CommitConsent

        var testDescription: String { "\(kind) \(payload) \(mode) \(edits) \(commit) \(consent)" }
    }

    private struct End: Equatable {
        var content: ContentFixture.Content
        var results: [String]
    }

    static let cells: [Cell] = {
        var cells: [Cell] = []
        let payloads = [
            ("content", #"{"action":"refresh","object":"pump"}"#), ("content", #"{"action":"remove","object":"pump"}"#),
            ("definitions", "{}"), ("status", #"{"status":"maintenance"}"#), ("status", #"{"status":"over"}"#),
        ]
        for (kind, payload) in payloads {
            for mode in SyncMode.allCases {
                for edits in [0, 2] {
                    for commit in [CommitOutcome.committed, .refused("no"), .unreachable, .unknown] {
                        for consent in CommitConsent.allCases {
                            // The state without a prompt and without a commit is the same in all of them.
                            let isUnasked = edits == 0 || kind == "content" || payload.contains("over")
                            if isUnasked, commit != .committed || consent != .given { continue }
                            if consent != .given, kind == "definitions" || commit != .committed { continue }
                            cells.append(
                                Cell(
                                    kind: kind, payload: payload, mode: mode, edits: edits, commit: commit,
                                    consent: consent))
                        }
                    }
                }
            }
        }
        return cells
    }()

    private static func end(of cell: Cell, killed kill: ContentFixture.Kill?) async throws -> (End, actions: Int) {
        let fixture = try await Fixture(ContentFixture(cell.mode, edits: cell.edits))
        fixture.content.state.withLock {
            $0.commit = cell.commit
            $0.kill = kill
        }
        fixture.presenter.state.withLock { $0.consent = cell.consent }
        try await fixture.receive(Fixture.frame("a", cell.kind, cell.payload))
        let isOver: @Sendable () async throws -> Bool = {
            if try await fixture.results().isEmpty { return false }
            return try await fixture.inbox.isAllProcessed()
        }
        try await fixture.run(fixture.worker(), until: isOver)
        if try await !isOver() {
            // As a new process finds it.
            try await fixture.inbox.setOwner(Fixture.owner)
            fixture.content.state.withLock { $0.kill = nil }
            try await fixture.run(fixture.worker(), until: isOver)
        }
        _ = try await fixture.worker().advanceMaintenance()
        return (
            End(content: fixture.content.content, results: try await fixture.results()),
            fixture.content.state.withLock { $0.actions }
        )
    }

    @Test(arguments: cells)
    func `an update ends with the same content after a kill before or after any of its actions`(_ cell: Cell) async throws {
        let (whole, actions) = try await Self.end(of: cell, killed: nil)
        #expect(whole.content.edits + whole.content.commits >= cell.edits, "no edit is lost")
        for action in 0..<actions {
            for kill in [ContentFixture.Kill.before(action), .after(action)] {
                var (end, _) = try await Self.end(of: cell, killed: kill)
                // A commit with an unknown result may have been made; then there is nothing to ask.
                end.content.revision = whole.content.revision
                if end.content.commits == whole.content.commits, end.content.edits == whole.content.edits {
                    #expect(end.results == whole.results, "\(kill)")
                }
                #expect(end.content == whole.content, "\(kill)")
            }
        }
    }
}
