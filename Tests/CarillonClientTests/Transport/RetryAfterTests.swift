import CarillonBasics
import Testing

@testable import CarillonClient

struct RetryAfterTests {
    @Test(arguments: [(-1, 0), (0, 0), (1, 1), (86_400, 86_400), (86_401, 86_400), (.max, 86_400), (.min, 0)])
    func `the wait of a JSON member is limited to a day`(seconds: Int, wait: Int64) {
        #expect(RetryAfter.duration(seconds: seconds) == .seconds(wait))
    }
}
