#if !Simulator
    #error("CarillonAPNsSimulator needs the trait Simulator: .package(url: \"…\", from: \"…\", traits: [\"Simulator\"])")
#endif
