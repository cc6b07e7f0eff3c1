import Testing

@testable import CarillonClient

/// When an app receives the progress of its files.
struct ProgressPaceTests {
    private let start = ContinuousClock.now

    @Test func `the beginning and the end are reported, and in between at most ten steps a second`() {
        var pace = ProgressPace(total: 10_000)
        var told: [(bytes: Int64, at: Duration)] = []
        for step in 0...2000 {
            let time = Duration.milliseconds(step)
            if let bytes = pace.moved(0, to: Int64(step * 5), at: start + time) { told.append((bytes, time)) }
        }
        #expect(told.last?.bytes != 10_000, "it was written, and the server may not have it")
        let end = pace.finished(10_000, at: start + .milliseconds(2001))
        if let end { told.append((end, .milliseconds(2001))) }
        #expect(told.first?.bytes == 0 && told.last?.bytes == 10_000)
        #expect(told.count >= 16)
        for first in told { #expect(told.count { $0.at >= first.at && $0.at <= first.at + .seconds(1) } <= 10) }
        for (one, next) in zip(told, told.dropFirst()) { #expect(one.bytes < next.bytes) }
    }

    @Test func `files are counted together, and steps backwards or of earlier files are not reported`() {
        var pace = ProgressPace(total: 30)
        #expect(pace.moved(0, to: 5, at: start) == 5)
        #expect(pace.moved(0, to: 2, at: start + .seconds(1)) == nil, "a cut")
        #expect(pace.finished(10, at: start + .seconds(2)) == 10)
        #expect(pace.moved(0, to: 10, at: start + .seconds(3)) == nil, "it is not of the second file")
        #expect(pace.moved(1, to: 5, at: start + .seconds(4)) == 15)
        #expect(pace.moved(1, to: 6, at: start + .seconds(4) + .milliseconds(100)) == nil, "too soon")
        #expect(pace.finished(20, at: start + .seconds(4) + .milliseconds(110)) == 30, "the end is reported at once")
        #expect(pace.moved(2, to: 1, at: start + .seconds(9)) == nil)
    }

    @Test func `a file that grew does not go beyond the whole`() {
        var pace = ProgressPace(total: 10)
        #expect(pace.moved(0, to: 25, at: start) == nil)
        #expect(pace.finished(25, at: start + .seconds(1)) == 10)
        #expect(pace.moved(1, to: 1, at: start + .seconds(2)) == nil)
    }

    @Test func `a reader that is busy keeps its results, and of progress the newest`() async {
        let listeners = ServiceClientListeners()
        let stream = listeners.subscribe()
        let address = ServiceApplication(app: "com.example.files")
        for number in 0..<40 { listeners.notify([.didReceive(from: address, .success(.init()), id: "\(number)")]) }
        for bytes in 0..<1000 as Range<Int64> { listeners.notifyProgress(.sending(id: "p", bytesSent: bytes, of: 1000)) }
        listeners.notify([.didReceive(from: address, .success(.init()), id: "last")])
        var (results, progress) = (0, 0)
        for await event in stream {
            switch event {
            case .didReceive: results += 1
            case .sending: progress += 1
            default: break
            }
            if case .didReceive(_, _, let id) = event, id == "last" { break }
        }
        #expect(results == 41)
        #expect(progress == 1)
    }
}
