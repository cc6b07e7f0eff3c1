import CarillonCore

extension HomeDomain {
    /// Creates the answers of this home to questions of other homes. They refer to the home weakly, because the home owns them.
    func makeAnswers() -> HomeAnswers {
        var answers = HomeAnswers()
        addServiceAnswers(to: &answers)
        addSubscriptionAnswers(to: &answers)
        addUpdateAnswers(to: &answers)
        addRegistryAnswers(to: &answers)
        addItemAnswers(to: &answers)
        addChannelAnswers(to: &answers)
        return answers
    }
}
