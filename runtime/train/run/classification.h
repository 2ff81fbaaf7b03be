// Labelled texts as records of a classifier, and the classifier's accuracy.
#ifndef WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_
#define WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_

#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/data/labelled.h"
#include "runtime/layers/classifier.h"

namespace wisp {

// Records of the texts, each with its label as the only target. They are views: `sequences` must outlive them.
std::vector<Record> ViewRecords(const data::LabelledSequences& sequences);

// The class with the largest logit, the first of equal ones. The head reads its input as the context's head_input says.
uint32_t Predict(const Classifier& graph, RecordContext& context, std::span<const int32_t> tokens);

// The share of records whose class is predicted; 0 without records. Local-only if the records are private.
double Accuracy(const Classifier& graph, const float* flat, std::span<const Record> records, const HeadInput& input,
                Workers& workers);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_
