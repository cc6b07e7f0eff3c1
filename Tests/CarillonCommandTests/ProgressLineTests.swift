import Testing

@testable import CarillonCommand

struct ProgressLineTests {
    private let line = ProgressLine(accepted: 9120, rejected: 12, failed: 0, fraction: 0.5, perSecond: 18_240)

    @Test func `a bar, the rate and the counts, without those that are none`() {
        #expect(line.text(width: 80) == "[###############---------------]  50 %  18,240/s  accepted 9,120  refused 12")
    }

    @Test func `without a known end there is no bar`() {
        var line = line
        line.fraction = nil
        line.failed = 3
        #expect(line.text(width: 80) == "9,135 sent  18,240/s  accepted 9,120  refused 12  failed 3")
    }

    @Test(arguments: 0...120)
    func `the line always fits`(width: Int) {
        var line = line
        #expect(line.text(width: width).count <= width)
        line.fraction = nil
        #expect(line.text(width: width).count <= width)
    }

    @Test(arguments: [-1.0, 0, 0.999, 1, 7])
    func `a fraction out of bounds is drawn within them`(fraction: Double) {
        var line = line
        line.fraction = fraction
        #expect(line.text(width: 80).hasPrefix(fraction >= 1 ? "[##############################] 100 %" : "["))
    }
}
