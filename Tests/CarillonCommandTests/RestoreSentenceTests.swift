import Testing

@testable import CarillonCommand

struct RestoreSentenceTests {
    @Test(arguments: [
        (0, false, "0 live updates"),
        (
            1, true,
            "1 live update, paused until `carillon updates resume`; list those of an app with `carillon updates list --app APP --key ADMIN-KEY`"
        ),
        (
            3, false,
            "3 live updates, delivered when the server has started; list those of an app with `carillon updates list --app APP --key ADMIN-KEY`"
        ),
    ])
    func `a restore says how many live updates there are, and how to list them`(
        count: Int, areHeld: Bool, sentence: String
    ) {
        #expect(RestoreCommand.sentence(ofUpdates: count, areHeld: areHeld) == sentence)
    }
}
