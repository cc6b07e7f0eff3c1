import CarillonCore

extension HomeDomain {
    /// Makes the answers of this home to questions of other homes. They refer to the home weakly, because the home keeps them.
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
