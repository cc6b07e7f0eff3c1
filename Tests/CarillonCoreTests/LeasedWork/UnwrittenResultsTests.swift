import Testing

@testable import CarillonCore

@Suite struct UnwrittenResultsTests {
    private struct Ended: LeaseResult, Equatable {
        var number: Int
        var leaseEnd: Timestamp

        init(_ number: Int, until seconds: Int64 = 30) {
            self.number = number
            leaseEnd = Sample.now.adding(seconds: seconds)
        }
    }

    private func results(_ numbers: ClosedRange<Int>, limit: Int) -> UnwrittenResults<Ended> {
        var results = UnwrittenResults<Ended>(limit: limit)
        for number in numbers { results.add(Ended(number)) }
        return results
    }

    @Test func `the oldest results are taken first`() {
        var results = results(1...5, limit: 10)
        #expect(results.take(atMost: 2).map(\.number) == [1, 2])
        #expect(results.take(atMost: 9).map(\.number) == [3, 4, 5])
        #expect(results.take(atMost: 9).isEmpty)
    }

    @Test(arguments: [(true, [1, 2, 3, 4]), (false, [3, 4, 1, 2])])
    func `results that could not be written are written before or behind the others`(isNext: Bool, order: [Int]) {
        var results = results(1...4, limit: 10)
        let failed = results.take(atMost: 2)
        #expect(results.keep(failed, isNext: isNext) == 0)
        #expect(results.results.map(\.number) == order)
    }

    @Test func `beyond the limit the first results are dropped`() {
        var results = results(1...4, limit: 3)
        #expect(results.results.count == 4, "no write has failed")
        let failed = results.take(atMost: 1)
        #expect(results.keep(failed, isNext: true) == 1)
        #expect(results.results.map(\.number) == [2, 3, 4])
    }

    @Test func `results are dropped when their leases end, and not before`() {
        var results = UnwrittenResults<Ended>(limit: 3)
        for (number, seconds) in [(1, 30), (2, 20), (3, 31)] as [(Int, Int64)] { results.add(Ended(number, until: seconds)) }
        #expect(results.dropEnded(at: Sample.now.adding(seconds: 19)) == 0)
        #expect(results.dropEnded(at: Sample.now.adding(seconds: 30)) == 2)
        #expect(results.results == [Ended(3, until: 31)])
    }
}
