import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// The refusals that a client gets if a home did not do its request.
struct HomeFaultTests {
    private static let unreachable = "The server cannot reach the home of the request; nothing was accepted. Retry."
    private static let unknown =
        "The home of the request did not answer, but may have accepted the request; check the result before you retry."

    @Test(arguments: [
        (HomeFault.unreachable, unreachable), (.moved(to: Shard(number: 7)), unreachable), (.outcomeUnknown, unknown),
    ])
    func `the text tells whether a change can have been accepted`(fault: HomeFault, text: String) {
        let logger = LogCatcher().logger
        let refusals = [
            Refusal(StoreFault(fault), logger: logger), Refusal(fault, logger: logger),
            SocketRequests.refusal(for: fault, logger: logger),
        ]
        for refusal in refusals {
            #expect(refusal.code == .storageUnavailable)
            #expect(refusal.detail == text)
            #expect(refusal.retryAfterSeconds == 1)
        }
    }

    @Test func `a fault of the store alone keeps its text`() {
        let fault = StoreFault(.unavailable, "no")
        let logger = LogCatcher().logger
        let text = "The server cannot use its store; nothing was accepted. Retry later."
        #expect(Refusal(fault, logger: logger).detail == text)
        let ofSocket = SocketRequests.refusal(for: fault, logger: logger)
        #expect(ofSocket.detail == "The server cannot process the request; retry later.")
    }
}
