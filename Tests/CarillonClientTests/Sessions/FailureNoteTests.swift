import TestSupport
import Testing

@testable import CarillonClient

/// The log of failures, and the value of `lastFailure`.
struct FailureNoteTests {
    private let lines = LogCatcher()
    private let note: FailureNote
    private let address: WebAddress

    init() throws {
        note = FailureNote(logger: lines.logger)
        address = try #require(WebAddress(webSocket: "ws://127.0.0.1:1/"))
    }

    private func fail(_ kind: TransportFault.Kind, wait: Duration? = .milliseconds(1500)) {
        note.failed(at: address, by: .socket, ConnectionFailure(TransportFault(kind, nil), at: address.text).error())
        note.willRetry(at: address, after: wait)
    }

    @Test func `a warning has address, reason, advice and wait, once for each reason`() {
        for _ in 0..<3 { fail(.timeOut) }
        #expect(
            lines.warnings == [
                "warning cannot connect to server; retrying address=ws://127.0.0.1:1/ advice=Check for a firewall between "
                    + "this machine and the server. reason=no answer in time retry-in-ms=1500"
            ])
        fail(.refusedUpgrade, wait: nil)
        #expect(lines.warnings.count == 2 && lines.warnings[1].contains("did not accept a WebSocket"))
        note.connected()
        fail(.timeOut)
        #expect(lines.warnings.count == 3)
    }

    @Test func `the last failure stays, and the present one ends with success`() {
        fail(.timeOut)
        #expect(note.last?.code == .serverUnreachable && note.present?.code == .serverUnreachable)
        note.connected()
        #expect(note.last?.code == .serverUnreachable && note.present == nil)
        #expect(note.liveCount == 1)
    }

    @Test func `a failed transfer does not keep a live client from its work`() {
        let failed = PushError(.serverUnavailable, "The server answered with status 503.")
        note.connected()
        note.failed(at: address, by: .http, failed)
        #expect(note.present(isLive: true) == nil)
        #expect(note.present(isLive: false)?.message == failed.message)
        note.obstructed(PushError(.storageMismatch, "The storage belongs to another server."))
        #expect(note.present(isLive: true)?.code == .storageMismatch)
        #expect(note.present(isLive: false)?.message == failed.message)
        fail(.timeOut)
        #expect(note.present(isLive: false)?.code == .serverUnreachable)
    }

    @Test func `the failure of a request that is not repeated is a warning once`() {
        let failed = PushError(.serverUnavailable, "The response is not of a Carillon server.")
        for _ in 0..<3 { note.failedOnce(at: address, failed) }
        #expect(note.last?.message == failed.message && note.present == nil)
        #expect(lines.warnings.count == 1)
        #expect(lines.warnings.first?.contains("retrying") == false, "\(lines.warnings)")
        note.answered(at: address)
        note.failedOnce(at: address, failed)
        #expect(lines.warnings.count == 2)
    }

    @Test func `an attempt that was cancelled is no failure`() {
        let cancelled = TransportFault(.unreachable, CancellationError())
        note.failed(at: address, by: .socket, ConnectionFailure(cancelled, at: address.text).error())
        note.willRetry(at: address)
        #expect(note.last == nil && note.present == nil && lines.warnings.isEmpty)
    }

    @Test func `a refusal by the server is logged as a warning once, until it changes or the request succeeds`() {
        let full = PushError(.serverUnavailable, "The server cannot register the channel.")
        for _ in 0..<3 { note.obstructed(full) }
        #expect(lines.warnings.count == 1 && note.present?.code == .serverUnavailable)
        note.obstructed(PushError(.storageMismatch, "The storage belongs to another server."))
        #expect(lines.warnings.count == 2 && note.last?.code == .storageMismatch)
        note.connected()
        #expect(note.present == nil)
        for _ in 0..<2 {
            note.obstructed(PushError(.replaced, "Another connection took this device's place."))
            note.connected()
        }
        #expect(lines.warnings.count == 3)
    }

    @Test(arguments: [
        (Duration.milliseconds(-1), "0 ms"), (.zero, "0 ms"), (.milliseconds(999), "999 ms"), (.seconds(1), "1 s"),
        (.milliseconds(1600), "2 s"), (.seconds(300), "300 s"),
    ])
    func `a time is in milliseconds below a second`(_ wait: Duration, _ text: String) {
        #expect(wait.text == text)
    }
}
