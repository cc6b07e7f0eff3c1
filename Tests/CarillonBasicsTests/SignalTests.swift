import CarillonBasics
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SignalTests {
    @Test func `a signal that was sent before is taken at once, and once`() async {
        let signal = Signal()
        signal.send()
        signal.send()
        await signal.wait()
        let waits = Task { await signal.wait() }
        signal.send()
        await waits.value
    }

    @Test func `a cancelled waiter stops waiting`() async {
        let signal = Signal()
        let waits = Task { await signal.wait() }
        waits.cancel()
        await waits.value
        let begun = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await signal.wait()
        }
        await begun.value
    }
}
