import CarillonCore
import Testing

@testable import CarillonCommand

struct RestoreSentenceTests {
    @Test(arguments: [
        (0, 0, "0 live updates"),
        (
            1, 1,
            "1 live update, 1 paused until `carillon updates resume`; list those of an app with `carillon updates list --status paused --app APP --key ADMIN-KEY`"
        ),
        (
            3, 0,
            "3 live updates, 0 paused until `carillon updates resume`; list those of an app with `carillon updates list --status live --app APP --key ADMIN-KEY`"
        ),
    ])
    func `a restore reports the number of live updates, and how to list them`(
        live: Int, paused: Int, sentence: String
    ) {
        #expect(RestoreCommand.sentence(of: LiveUpdateCount(live: live, paused: paused)) == sentence)
    }
}
