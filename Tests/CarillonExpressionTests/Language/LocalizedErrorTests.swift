import CarillonExpression
import Foundation
import Testing

struct LocalizedErrorTests {
    @Test func `a refused condition is described by its problems, and a problem by its place and its message`() {
        let refusal = #expect(throws: ExpressionRefusal.self) { _ = try ExpressionProgram("1 +", in: .init()) }
        let error: (any Error)? = refusal
        #expect(error?.localizedDescription == refusal?.description)
        let problem = refusal?.problems.first
        #expect((problem as (any Error)?)?.localizedDescription == problem?.description)
        #expect(problem.map { $0.description.hasSuffix(": \($0.message)") } == true)
    }
}
