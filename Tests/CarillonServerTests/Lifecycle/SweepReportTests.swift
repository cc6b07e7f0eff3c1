import Logging
import Testing

@testable import CarillonServer

struct SweepReportTests {
    @Test func `steps with a pause of their own run less often than the others`() {
        let report = SweepReport(logger: Logger(label: "test"), seconds: 5)
        #expect(report.wait(0) == .seconds(5))
        #expect(report.wait(30) == .seconds(30))
        #expect(report.wait(3) == .seconds(5))
    }

    @Test func `a step that fails does not stop the steps after it`() async {
        let report = SweepReport(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, seconds: 5)
        struct Failed: Error {}
        await report("first") { throw Failed() }
        var isRun = false
        await report("second") { isRun = true }
        #expect(isRun)
    }
}
